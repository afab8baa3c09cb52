import { readOnly } from './common.ts';
import { json } from './json.ts';
import type { FieldType } from './types.ts';

/** Computed from other fields of the record whenever it is read; neither stored nor writable. */
export const formula: FieldType = {
  ...json,
  name: 'formula',
  writable: false,
  columnType: () => null,
  parseInput: (_value, field, pointer) => readOnly(field, pointer),
  operators: [],
  searchable: false,
  aggregations: [],
  expressionType: null,
  calculated: 'formula',
  needs: ['formula'],
  outputSql: () => 'NULL',
  attributes: ['formula', 'precision', 'scale', 'currencyField'],
  example: () => null,
};
