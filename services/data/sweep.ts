/**
 * What ends by itself: idempotency keys after their retention, deleted records that nobody restored. And what a crash
 * left undone: users that auth has not heard of. One process at a time takes it on; doing it twice does no harm.
 */

import type { TenantInfo } from '../../lib/snapshot/types.ts';
import type { Database } from '../../mixins/database/database.ts';
import { sendUnsentUsers, type UserSync } from './users/sync.ts';

export interface SweepResult {
  keys: number;
  records: number;
  shares: number;
  users: number;
}

/** Rows deleted in one statement, so that a sweep never holds many locks. */
const BATCH = 5_000;

export async function sweepTenant(database: Database, tenantId: string, sync: UserSync): Promise<SweepResult> {
  const deleteExpired = (table: string, key: string, column: string): Promise<number> =>
    database.tenant(tenantId, async (tx) => {
      let deleted = 0;
      for (;;) {
        const { rowCount } = await tx.query(
          `DELETE FROM ${tx.schema}.${table} WHERE (${key}) IN (SELECT ${key} FROM ${tx.schema}.${table} WHERE ${column} < now() LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)`,
        );
        deleted += rowCount;
        if (rowCount < BATCH) return deleted;
      }
    });
  return {
    keys: await deleteExpired('_idempotency', 'client_id, user_id, key', 'expires_at'),
    records: await deleteExpired('_recycle_bin', 'object, record_id', 'restorable_until'),
    shares: await deleteExpired('_revoked_shares', 'share_id', 'kept_until'),
    users: await sendUnsentUsers(database, tenantId, sync),
  };
}

/** True for the one process that does the sweep that is due; the next one is due after `everySeconds`. */
export async function claimSweep(database: Database, everySeconds: number): Promise<boolean> {
  const { rowCount } = await database.query(
    `UPDATE data.sweeps SET due_at = now() + make_interval(secs => $1) WHERE name = 'tenants' AND due_at <= now()`,
    [everySeconds],
  );
  return rowCount === 1;
}

/** All tenants, one after the other; a tenant that fails is left for the next time. */
export async function sweepAll(
  database: Database,
  tenants: (after: string | undefined) => Promise<readonly Pick<TenantInfo, 'id'>[]>,
  sync: UserSync,
  failed: (tenantId: string, error: unknown) => void,
  stopped: () => boolean,
): Promise<void> {
  let after: string | undefined;
  for (;;) {
    const page = await tenants(after);
    for (const { id } of page) {
      if (stopped()) return;
      await sweepTenant(database, id, sync).catch((error) => failed(id, error));
    }
    if (page.length === 0) return;
    after = page.at(-1)!.id;
  }
}
