/** Look-ups by a name that a caller sent: `constructor` and its like are names as any other. */
import type { FieldMeta, ObjectMeta, Snapshot } from './snapshot.ts';

export const objectOf = (snapshot: Snapshot, apiName: string): ObjectMeta | undefined =>
  Object.hasOwn(snapshot.objects, apiName) ? snapshot.objects[apiName] : undefined;

export const fieldOf = (object: ObjectMeta, apiName: string): FieldMeta | undefined =>
  Object.hasOwn(object.fields, apiName) ? object.fields[apiName] : undefined;
