/** Picklist values that a record's type allows. Pure. Source: docs/reference/records.md#record-types. */

import type { ObjectAccess } from '../../../lib/access/types.ts';
import { type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { ownEntry, requireField } from '../../../lib/schema/lookup.ts';
import { defaultRecordType, findRecordType, RECORD_TYPE_FIELD, valuesIn } from '../../../lib/schema/record-types.ts';
import type { FieldMeta, ObjectMeta, RecordTypeMeta } from '../../../lib/schema/snapshot.ts';
import { pointerTo, unseenValue } from './violations.ts';
import type { FieldValue } from './write.ts';

type Stored = Readonly<Record<string, unknown>>;

const givenType = (given: readonly FieldValue[]): FieldValue | undefined =>
  given.find((item) => item.field.apiName === RECORD_TYPE_FIELD);

/** The default type, when a create leaves its type out. */
export function withDefaultType(object: ObjectMeta, body: Readonly<Record<string, unknown>>): readonly FieldValue[] {
  const type = Object.hasOwn(body, RECORD_TYPE_FIELD) ? null : defaultRecordType(object);
  return type ? [{ field: requireField(object, RECORD_TYPE_FIELD), value: type.apiName, lookup: null }] : [];
}

/** The type of a record takes this value in a picklist. */
export const typeTakes = (type: RecordTypeMeta | null, field: FieldMeta, value: unknown): boolean =>
  valuesIn(type, field)?.includes(String(value)) !== false;

export const typeGiven = (object: ObjectMeta, given: readonly FieldValue[]): RecordTypeMeta | null =>
  findRecordType(object, givenType(given)?.value);

/** Stored fields that an update must know to hold the record to its type. */
export function typedFields(object: ObjectMeta, given: readonly Pick<FieldValue, 'field'>[]): FieldMeta[] {
  const types = object.recordTypes;
  if (types.length === 0) return [];
  const limited = new Set(types.flatMap((type) => Object.keys(type.picklistValues)));
  const changesType = given.some((item) => item.field.apiName === RECORD_TYPE_FIELD);
  if (!changesType && !given.some((item) => limited.has(item.field.apiName))) return [];
  const names = changesType ? [RECORD_TYPE_FIELD, ...limited] : [RECORD_TYPE_FIELD];
  return names.flatMap((name) => ownEntry(object.fields, name) ?? []);
}

/** The type must be an active one, or the stored one; picklists must keep to it, also those that stay as they are. */
export function checkRecordType(access: ObjectAccess, given: readonly FieldValue[], stored: Stored = {}): Violation[] {
  const { object, fields } = access;
  const types = object.recordTypes;
  if (types.length === 0) return [];
  const named = givenType(given);
  const name = named ? named.value : ownEntry(stored, RECORD_TYPE_FIELD);
  const type = findRecordType(object, name);
  const isKept = named !== undefined && named.value === ownEntry(stored, RECORD_TYPE_FIELD);
  if (named && named.value !== null && !isKept && !type?.active)
    return [
      violation(pointerTo(RECORD_TYPE_FIELD), 'PICKLIST_VALUE_INVALID', `${object.apiName} has no such record type.`, {
        field: RECORD_TYPE_FIELD,
        params: { allowed: types.filter((item) => item.active).map((item) => item.apiName) },
      }),
    ];
  if (!type) return [];
  const values = new Map(given.map((item) => [item.field.apiName, item.value]));
  return Object.keys(type.picklistValues).flatMap((apiName) => {
    const field = ownEntry(object.fields, apiName);
    if (!field || !(values.has(apiName) || (named && !isKept))) return [];
    const value: unknown = values.has(apiName) ? values.get(apiName) : ownEntry(stored, apiName);
    const allowed = valuesIn(type, field) ?? [];
    const wrong = [value]
      .flat()
      .filter((item) => item !== null && item !== undefined && !allowed.includes(String(item)));
    if (wrong.length === 0) return [];
    return [ownEntry(fields, apiName)?.read ? refused(field, type, allowed) : unseenValue('PICKLIST_VALUE_INVALID')];
  });
}

const refused = (field: FieldMeta, type: RecordTypeMeta, allowed: readonly string[]): Violation =>
  violation(
    pointerTo(field.apiName),
    'PICKLIST_VALUE_INVALID',
    `${field.apiName} does not take this value in records of type ${type.apiName}.`,
    { field: field.apiName, params: { allowed: [...allowed], recordTypeApiName: type.apiName } },
  );
