/**
 * What ends by itself: idempotency keys after their retention, deleted records that nobody restored. And what a crash
 * left undone: users that auth has not heard of. One process at a time takes it on; doing it twice does no harm.
 */

import type { Database } from '../../mixins/database/database.ts';
import { removeExpired } from './trail/chain.ts';
import { sendUnsentUsers, type UserSync } from './users/sync.ts';

interface SweepResult {
  confirmations: number;
  keys: number;
  records: number;
  shares: number;
  users: number;
  audit: number;
}

/** Rows deleted in one statement, so that a sweep never holds many locks. */
const BATCH = 5_000;

export async function sweepTenant(database: Database, tenantId: string, sync: UserSync): Promise<SweepResult> {
  const deleteExpired = (table: string, key: string, column: string, also: (schema: string) => string = () => '') =>
    database.tenant(tenantId, async (tx) => {
      let deleted = 0;
      for (;;) {
        const { rows } = await tx.query<{ count: number }>(
          `WITH gone AS (DELETE FROM ${tx.schema}.${table} WHERE (${key}) IN (SELECT ${key} FROM ${tx.schema}.${table} WHERE ${column} < now() LIMIT ${BATCH} FOR UPDATE SKIP LOCKED) RETURNING ${key})
          ${also(tx.schema)} SELECT count(*)::int AS count FROM gone`,
        );
        deleted += rows[0]!.count;
        if (rows[0]!.count < BATCH) return deleted;
      }
    });
  return {
    confirmations: await deleteExpired('_confirmations', 'confirmation_id', 'expires_at'),
    keys: await deleteExpired('_idempotency', 'client_id, user_id, key', 'expires_at'),
    records: await deleteExpired('_recycle_bin', 'object, record_id', 'restorable_until', sharesOfGone),
    shares: await deleteExpired('_revoked_shares', 'share_id', 'kept_until'),
    users: await sendUnsentUsers(database, tenantId, sync),
    audit: await removeExpired(database, tenantId),
  };
}

/** A record takes its shares along when it goes for good. */
const sharesOfGone = (schema: string): string =>
  `, shares AS (DELETE FROM ${schema}._shares s USING gone WHERE s.record_id = gone.record_id AND s.object = gone.object)`;
