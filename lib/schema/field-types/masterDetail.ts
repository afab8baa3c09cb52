import { ID_CHARS, referenceType } from './reference-family.ts';
import type { FieldType } from './types.ts';

/** The record that this one is a part of: always required (and may say so), and deleted together with it. */
export const masterDetail: FieldType = {
  ...referenceType('masterDetail', ['referenceTo', 'onDelete', 'relationshipName', 'required']),
  relation: 'master',
  comparison: 'value',
  maxChars: ID_CHARS,
  needs: ['referenceTo'],
};
