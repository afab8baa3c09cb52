import { referenceType } from './reference-family.ts';

/** The record that this one is a part of: always required, and deleted together with it. */
export const masterDetail = referenceType('masterDetail', ['referenceTo', 'onDelete', 'relationshipName']);
