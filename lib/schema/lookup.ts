/** Lookups by a name that a caller sent: names such as `constructor` find nothing. */
import type { FieldMeta, ObjectMeta, Snapshot } from './snapshot.ts';

export const objectOf = (snapshot: Snapshot, apiName: string): ObjectMeta | undefined =>
  Object.hasOwn(snapshot.objects, apiName) ? snapshot.objects[apiName] : undefined;

/** A field that the object is known to have. */
export function requireField(object: ObjectMeta, apiName: string): FieldMeta {
  const field = fieldOf(object, apiName);
  if (field === undefined) throw new Error(`${object.apiName} has no field ${apiName}.`);
  return field;
}

export const fieldOf = (object: Pick<ObjectMeta, 'fields'>, apiName: string): FieldMeta | undefined =>
  Object.hasOwn(object.fields, apiName) ? object.fields[apiName] : undefined;
