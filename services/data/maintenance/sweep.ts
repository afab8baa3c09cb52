/**
 * Removes idempotency keys, confirmations and deleted records after their retention, and sends users to auth that a
 * crash kept from it. One process at a time does it; doing it twice does no harm.
 */

import type { Database } from '../../../mixins/database/database.ts';
import { removeExpired } from '../trail/chain.ts';
import { sendUnsentUsers, type UserSync } from '../users/sync.ts';

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
  const sweep = (expired: Expired): Promise<number> =>
    database.tenant(tenantId, async (tx) => {
      let deleted = 0;
      for (;;) {
        const { count } = await tx.one<{ count: number }>({ text: deleteExpiredSql(tx.schema, expired) });
        deleted += count;
        if (count < BATCH) return deleted;
      }
    });
  return {
    confirmations: await sweep({ table: '_confirmations', key: 'confirmation_id', column: 'expires_at' }),
    keys: await sweep({ table: '_idempotency', key: 'client_id, user_id, key', column: 'expires_at' }),
    records: await sweep({
      table: '_recycle_bin',
      key: 'object, record_id',
      column: 'restorable_until',
      deletedWith: sharesOfDeleted,
    }),
    shares: await sweep({ table: '_revoked_shares', key: 'share_id', column: 'kept_until' }),
    users: await sendUnsentUsers(database, tenantId, sync),
    audit: await removeExpired(database, tenantId),
  };
}

/** Rows of a table whose moment in `column` has passed. */
interface Expired {
  readonly table: string;
  readonly key: string;
  readonly column: string;
  /** Another part of the statement, which deletes what belongs to the rows in `deleted_rows`. */
  readonly deletedWith?: (schema: string) => string;
}

const deleteExpiredSql = (schema: string, { table, key, column, deletedWith }: Expired): string => `
  WITH deleted_rows AS (
    DELETE FROM ${schema}.${table} WHERE (${key}) IN (
      SELECT ${key} FROM ${schema}.${table} WHERE ${column} < now() LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
    RETURNING ${key}
  )${deletedWith ? `, ${deletedWith(schema)}` : ''}
  SELECT count(*)::int AS count FROM deleted_rows`;

/** The shares of a record that can no longer be restored. */
const sharesOfDeleted = (schema: string): string => `deleted_shares AS (
    DELETE FROM ${schema}._shares AS share USING deleted_rows
    WHERE share.record_id = deleted_rows.record_id AND share.object = deleted_rows.object
  )`;
