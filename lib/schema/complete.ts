/** Snapshots as this version of the platform reads them, whichever version compiled them. Pure. */
import { NO_CONFIGURATION, NO_RULES, type Snapshot } from './snapshot.ts';

/** The snapshot with all parts that this version knows: older versions did not compile some, for there were none. */
export const completed = (snapshot: Snapshot): Snapshot => ({
  ...NO_CONFIGURATION,
  ...snapshot,
  objects: Object.fromEntries(
    Object.entries(snapshot.objects).map(([apiName, object]) => [apiName, { ...NO_RULES, ...object }]),
  ),
});
