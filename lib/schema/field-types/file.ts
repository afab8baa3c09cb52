import { BLANK, EQUALITY } from './common.ts';
import { referenceType } from './reference-family.ts';
import type { FieldType } from './types.ts';

/** The id of a stored file. */
export const file: FieldType = {
  ...referenceType('file', ['required']),
  holdsFile: true,
  operators: [...EQUALITY, ...BLANK],
  sortable: false,
  groupable: false,
  aggregations: ['count'],
};
