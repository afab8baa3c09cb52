/** The fields through which sharing rules of kind reference share records. Source: docs/reference/access.md#sharing-rules. */
import { memoize } from '../values/memoize.ts';
import { fieldOf } from './lookup.ts';
import type { FieldMeta, ObjectMeta, SharingRuleMeta } from './snapshot.ts';
import { isUserObject } from './user-object.ts';

interface SharingField {
  readonly field: FieldMeta;
  /** The field names the user itself; otherwise a record whose owner is the user. */
  readonly toUser: boolean;
}

/** The field of a rule of kind reference; null for the other kinds. */
export function sharesThrough(object: ObjectMeta, { through }: SharingRuleMeta): SharingField | null {
  const field = through === undefined ? undefined : fieldOf(object, through);
  const [target] = field?.referenceTo ?? [];
  return field && target !== undefined ? { field, toUser: isUserObject({ apiName: target }) } : null;
}

/** The fields of an object through which its records are shared: setting one of them gives access to the record. */
export const fieldsThatShare = memoize((object: ObjectMeta): readonly SharingField[] => {
  const found = object.sharingRules.flatMap((rule) => sharesThrough(object, rule) ?? []);
  return [...new Map(found.map((item) => [item.field.apiName, item])).values()];
});
