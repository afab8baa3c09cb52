import { readOnly } from './common.ts';
import { decimal } from './decimal.ts';
import type { FieldType } from './types.ts';

/** A figure over the child records, kept by the platform: count, sum, min, max or avg. Its values are of its result's type. */
export const rollup: FieldType = {
  ...decimal,
  name: 'rollup',
  writable: false,
  parseInput: (_value, field, pointer) => readOnly(field, pointer),
  attributes: ['rollup', 'precision', 'scale', 'currencyField'],
  example: () => 3,
};
