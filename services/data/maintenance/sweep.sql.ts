/** The statements that remove expired rows, each a bounded number of them, oldest first. `schema` is quoted. */
import { LIMITS } from '../../../lib/limits.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { USER_SYNC } from '../users/rules.ts';

/** Rows removed by one statement, so that it never holds many locks. */
export const BATCH_ROWS = 5_000;

/** A table whose rows expire at the moment in `column`, which an index of its own holds. */
export interface Expiring {
  readonly table: string;
  readonly column: string;
  /** Another part of the statement, which deletes what belongs to the rows in `removed`. */
  readonly removedWith?: (schema: string) => string;
}

export const EXPIRING = {
  confirmations: { table: '_confirmations', column: 'expires_at' },
  keys: { table: '_idempotency', column: 'expires_at' },
  records: { table: '_recycle_bin', column: 'restorable_until', removedWith: sharesOfRemoved },
  shares: { table: '_revoked_shares', column: 'kept_until' },
} as const satisfies Record<string, Expiring>;

/** Answers how many rows there were: with fewer than BATCH_ROWS, all that had expired are gone. */
export const removeExpiredStatement = (schema: string, { table, column, removedWith }: Expiring): Statement => ({
  // The order makes the planner use the index, whatever it believes about how many rows have expired.
  text: `WITH removed AS (
      DELETE FROM ${schema}.${table} WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM ${schema}.${table} WHERE ${column} < now()
        ORDER BY ${column} LIMIT ${BATCH_ROWS} FOR UPDATE SKIP LOCKED))
      RETURNING *
    )${removedWith ? `, ${removedWith(schema)}` : ''}
    SELECT count(*)::int AS count FROM removed`,
});

/** The shares of a record that can no longer be restored. */
function sharesOfRemoved(schema: string): string {
  return `removed_shares AS (
      DELETE FROM ${schema}._shares AS share USING removed
      WHERE share.record_id = removed.record_id AND share.object = removed.object
    )`;
}

export interface RemovedEvents {
  readonly count: number;
  /** The last event that was removed; null: none was. */
  readonly last: number | null;
}

/**
 * Removes events of the outbox after their retention, in the order of their ids, which is about that of time, so that
 * the primary key finds them and no write pays for another index. Where the oldest is still kept, one row is read.
 * `after`: the last event of the previous batch, so that what it removed is not passed again. Users that auth has not
 * been informed of remain, however old.
 */
export function removeEventsStatement(schema: string, after: number): Statement {
  const rows = `FROM ${schema}._outbox WHERE outbox_id > $1 AND type <> '${USER_SYNC}' ORDER BY outbox_id`;
  const isExpired = (at: string): string => `${at} < now() - interval '${LIMITS.event_retention_days} days'`;
  return {
    text: `WITH first AS MATERIALIZED (SELECT at ${rows} LIMIT 1),
      oldest AS MATERIALIZED (
        SELECT * FROM (SELECT outbox_id, at ${rows} LIMIT ${BATCH_ROWS}) event
        WHERE (SELECT ${isExpired('at')} FROM first)),
      removed AS (
        DELETE FROM ${schema}._outbox event USING oldest
        WHERE event.outbox_id = oldest.outbox_id AND ${isExpired('oldest.at')}
        RETURNING event.outbox_id)
      SELECT count(*)::int AS count, max(outbox_id) AS last FROM removed`,
    values: [after],
  };
}
