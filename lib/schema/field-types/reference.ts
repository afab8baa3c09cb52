import { referenceType } from './reference-family.ts';

/** A record of another object (or of the same one) that this one points to. */
export const reference = referenceType('reference', ['referenceTo', 'onDelete', 'relationshipName', 'required']);
