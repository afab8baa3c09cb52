import { ID_CHARS, referenceType } from './reference-family.ts';
import type { FieldType } from './types.ts';

/** A record of another object (or of the same one) that this one points to. */
export const reference: FieldType = {
  ...referenceType('reference', ['referenceTo', 'onDelete', 'relationshipName', 'required']),
  relation: 'reference',
  comparison: 'value',
  maxChars: ID_CHARS,
  needs: ['referenceTo'],
};
