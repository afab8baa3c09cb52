/**
 * Record types: kinds of records of one object that take different values in their picklists. Pure.
 * Source: docs/reference/records.md#record-types.
 */
import { typeOf } from './field-types/registry.ts';
import { ownEntry } from './lookup.ts';
import type { FieldMeta, ObjectMeta, RecordTypeMeta } from './snapshot.ts';
import { isUserObject, LAST_SIGN_IN_FIELD } from './user-object.ts';

export const RECORD_TYPE_FIELD = 'recordTypeApiName';

export const findRecordType = (object: ObjectMeta, apiName: unknown): RecordTypeMeta | null =>
  object.recordTypes.find((type) => type.apiName === apiName) ?? null;

/** The type of a new record that does not say its own. */
export const defaultRecordType = (object: ObjectMeta): RecordTypeMeta | null =>
  object.recordTypes.find((type) => type.active && type.default) ?? null;

/** Values that a field takes in records of a type; null: as the field says. */
export const valuesIn = (type: RecordTypeMeta | null, field: FieldMeta): readonly string[] | null =>
  (type && ownEntry(type.picklistValues, field.apiName)) ?? null;

/**
 * Fields that callers may write, permission aside: the owner, the record type where the object has record types, and
 * what is not computed. Users have no owner, and when they signed in is noted by the platform.
 */
export const isWritable = (object: ObjectMeta, field: FieldMeta): boolean =>
  typeOf(field).writable &&
  !(isUserObject(object) && field.apiName === LAST_SIGN_IN_FIELD) &&
  (!field.system ||
    (field.apiName === 'ownerId' && !isUserObject(object)) ||
    (field.apiName === RECORD_TYPE_FIELD && object.recordTypes.length > 0));
