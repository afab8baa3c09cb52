import { readOnly } from './common.ts';
import { decimalValues } from './decimal-family.ts';
import type { FieldType } from './types.ts';

/**
 * A count, sum, minimum, maximum or average over child records, kept by the platform. Its values are of its result's
 * type.
 */
export const rollup: FieldType = {
  ...decimalValues('rollup', { example: 3 }),
  writable: false,
  parseInput: (_value, field, pointer) => readOnly(field, pointer),
  expressionType: null,
  calculated: 'rollup',
  attributes: ['rollup', 'precision', 'scale', 'currencyField'],
  needs: ['rollup'],
};
