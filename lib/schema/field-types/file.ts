import { BLANK, EQUALITY } from './common.ts';
import { referenceType } from './reference-family.ts';
import type { FieldType } from './types.ts';

/** The id of a stored file. Files are not available yet, so nothing writes it. */
export const file: FieldType = {
  ...referenceType('file', ['required']),
  writable: false,
  operators: [...EQUALITY, ...BLANK],
  sortable: false,
  groupable: false,
  aggregations: ['count'],
};
