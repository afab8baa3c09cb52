/** Snapshots as this version of the platform reads them, whichever version compiled them. Pure. */
import type { ObjectMeta, Snapshot } from './snapshot.ts';

/** What older versions did not compile, for their tenants had none of it. */
const OBJECT_PARTS = {
  validationRules: [],
  duplicateRules: [],
  sharingRules: [],
  stateModel: null,
  recordTypes: [],
  actions: [],
} satisfies Partial<ObjectMeta>;

/** The snapshot with all parts that this version knows. */
export const completed = (snapshot: Snapshot): Snapshot => ({
  ...snapshot,
  groups: snapshot.groups ?? {},
  objects: Object.fromEntries(
    Object.entries(snapshot.objects).map(([apiName, object]) => [apiName, { ...OBJECT_PARTS, ...object }]),
  ),
});
