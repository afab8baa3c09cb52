/** The statements that remove expired rows, each a bounded number of them, oldest first. `schema` is quoted. */
import { LIMITS } from '../../../lib/limits.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

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
  /** Number of the last event that was removed; null: none was. */
  readonly last: number | null;
}

/**
 * Removes events after their retention, in the order of their numbers, so that what is left has no holes. `after`: the
 * last number of the previous batch, so that the entries of removed rows in the index are not passed again. Events that
 * have no number yet remain.
 */
export function removeEventsStatement(schema: string, after: number): Statement {
  return {
    text: `WITH oldest AS MATERIALIZED (
        SELECT sequence, at < now() - interval '${LIMITS.event_retention_days} days' AS expired
        FROM ${schema}._outbox WHERE sequence > $1 ORDER BY sequence LIMIT ${BATCH_ROWS}),
      removed AS (
        DELETE FROM ${schema}._outbox
        WHERE sequence > $1 AND sequence <= (SELECT max(sequence) FROM oldest)
          AND sequence < coalesce((SELECT min(sequence) FROM oldest WHERE NOT expired), ${MAX_SEQUENCE})
        RETURNING sequence)
      SELECT count(*)::int AS count, max(sequence) AS last FROM removed`,
    values: [after],
  };
}

const MAX_SEQUENCE = '9223372036854775807';
