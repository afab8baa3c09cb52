import { readOnly } from './common.ts';
import { ID_CHARS, referenceType } from './reference-family.ts';
import type { FieldType } from './types.ts';

/** The id of the record itself, given by the platform: UUIDv7. */
export const id: FieldType = {
  ...referenceType('id', []),
  writable: false,
  systemOnly: true,
  maxChars: ID_CHARS,
  parseInput: (_value, field, pointer) => readOnly(field, pointer),
};
