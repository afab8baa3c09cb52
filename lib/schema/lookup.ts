/** Lookups by a name that a caller sent: names such as `constructor` find nothing. */
import type { FieldMeta, ObjectMeta, Snapshot } from './snapshot.ts';

/** An entry of a record by a name that a caller chose. */
export const ownEntry = <T>(record: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined;

export const objectOf = (snapshot: Snapshot, apiName: string): ObjectMeta | undefined =>
  ownEntry(snapshot.objects, apiName);

/** A field that the object is known to have. */
export function requireField(object: ObjectMeta, apiName: string): FieldMeta {
  const field = fieldOf(object, apiName);
  if (field === undefined) throw new Error(`${object.apiName} has no field ${apiName}.`);
  return field;
}

/** The object whose records a field refers to. */
export function referredObject({ apiName, referenceTo: [object] }: Pick<FieldMeta, 'apiName' | 'referenceTo'>): string {
  if (object === undefined) throw new Error(`${apiName} refers to no object.`);
  return object;
}

export const fieldOf = (object: Pick<ObjectMeta, 'fields'>, apiName: string): FieldMeta | undefined =>
  ownEntry(object.fields, apiName);
