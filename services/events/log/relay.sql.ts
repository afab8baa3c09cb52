/** The statements of the relay. `schema` is quoted. */
import type { Statement } from '../../../mixins/database/statement.ts';

/** Events numbered by one transaction, which holds up the relay of other processes and nothing else. */
export const BATCH_ROWS = 2_000;

/**
 * Rows for auth, which data sends and removes, are no events; nor are those for notifications, which removes them. An index holds the
 * rows of this condition alone.
 */
const IS_EVENT = "type NOT IN ('auth.user.sync', 'notifications.notification.requested')";
const IS_NEW = `sequence IS NULL AND ${IS_EVENT}`;

/** SQL: seconds since the change of the oldest event without a number began; null: there is none. */
const oldestSql = (schema: string): string =>
  `(SELECT extract(epoch FROM clock_timestamp() - at)::float8 FROM ${schema}._outbox WHERE ${IS_NEW} ORDER BY outbox_id LIMIT 1)`;

export interface Oldest {
  readonly oldestSeconds: number;
}

/** Locks the head of the log; no row: there is nothing to number. */
export const lockHeadStatement = (schema: string): Statement => ({
  text: `SELECT ${oldestSql(schema)} AS "oldestSeconds" FROM ${schema}._event_head
    WHERE EXISTS (SELECT FROM ${schema}._outbox WHERE ${IS_NEW}) FOR UPDATE`,
});

/** The same without a lock. */
export const oldestStatement = (schema: string): Statement => ({
  text: `SELECT coalesce(${oldestSql(schema)}, 0) AS "oldestSeconds"`,
});

export interface Numbered {
  readonly count: number;
  /** What they are, and the objects of those that are about records. */
  readonly types: readonly string[];
  readonly objects: readonly string[];
}

/** Numbers the oldest new events that are committed, behind the last one. */
export const numberStatement = (schema: string): Statement => ({
  text: `WITH fresh AS MATERIALIZED (
      SELECT outbox_id, row_number() OVER (ORDER BY outbox_id) AS place FROM (
        SELECT outbox_id FROM ${schema}._outbox WHERE ${IS_NEW} ORDER BY outbox_id LIMIT ${BATCH_ROWS}) oldest),
    numbered AS (
      UPDATE ${schema}._outbox event SET sequence = head.sequence + fresh.place
      FROM fresh, ${schema}._event_head head
      WHERE event.outbox_id = fresh.outbox_id AND event.sequence IS NULL AND event.${IS_EVENT}
      RETURNING event.type, event.object),
    counted AS (
      SELECT count(*)::int AS count, coalesce(array_agg(DISTINCT type), '{}') AS types,
        coalesce(array_agg(DISTINCT object) FILTER (WHERE object IS NOT NULL), '{}') AS objects
      FROM numbered)
    UPDATE ${schema}._event_head head SET sequence = head.sequence + counted.count FROM counted
    RETURNING counted.*`,
});
