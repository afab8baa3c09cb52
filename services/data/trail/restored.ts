/**
 * Begins new epochs on an operator's word, for what a database cannot know by itself: a disk that was put back as it was.
 * Source: docs/guides/operators.md#after-a-restore.
 */
import type { Database } from '../../../mixins/database/database.ts';
import { type RestoredRow, restoredStatement } from '../../../mixins/epoch/epoch.sql.ts';
import { hasPassed, renewEpoch, replicaError } from '../../../mixins/epoch/epoch.ts';

/** `begun`: there is a new epoch; `kept`: one was begun since the server was started. */
interface RestoredTenant {
  readonly outcome: 'begun' | 'kept';
  /** The tenant has no index for search, as when a dump was restored in one step. */
  readonly lacksIndexes: boolean;
}

/** `again`: also where an epoch was begun since the server was started, as for data that was put back while it ran. */
export async function beginAfterRestore(database: Database, tenantId: string, again: boolean): Promise<RestoredTenant> {
  const state = await database.tenant(tenantId, (tx) => tx.one<RestoredRow>(restoredStatement(tx.schema)));
  const { epoch, here, begunSinceStart, lacksIndexes } = state;
  if (here === null) throw replicaError();
  if (begunSinceStart && !again && !hasPassed(state)) return { outcome: 'kept', lacksIndexes };
  await renewEpoch(database, tenantId, epoch, here);
  return { outcome: 'begun', lacksIndexes };
}
