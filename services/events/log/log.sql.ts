/** The statement that reads the log. `schema` is quoted. */
import { LIMITS } from '../../../lib/limits.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { type EpochRow, epochColumns } from '../../../mixins/epoch/epoch.sql.ts';

export interface Asked {
  /** The last number that was read; null: what happens from now on. */
  readonly after: number | null;
  readonly types: readonly string[];
  /** null: events about anything. */
  readonly objects: readonly string[] | null;
  readonly take: number;
}

export interface LogEvent {
  readonly sequence: number;
  readonly outboxId: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly type: string;
  readonly object: string | null;
  readonly recordId: string | null;
  readonly recordVersion: number | null;
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly agentRunId: string | null;
  readonly requestId: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

/** SQL: milliseconds since 1970 of a timestamptz. */
export const milliseconds = (column: string): string => `(extract(epoch FROM ${column}) * 1000)::bigint`;

/** SQL: the number before the oldest event that is kept; `head` is a row of _event_head. */
export const oldestSql = (schema: string): string =>
  `coalesce((SELECT sequence - 1 FROM ${schema}._outbox WHERE sequence > 0 ORDER BY sequence LIMIT 1), head.sequence)`;

/** Columns of LogEvent, of the outbox. */
export const LOG_COLUMNS = `sequence, outbox_id AS "outboxId", ${milliseconds('at')} AS at, type, object,
  record_id AS "recordId", record_version AS "recordVersion", user_id AS "userId", client_id AS "clientId",
  agent_run_id AS "agentRunId", request_id AS "requestId", data`;

/** There is at least one row; its event is null when there is none. */
export type LogRow = EpochRow & {
  /** Numbers of the last event, and of the one before the oldest that is kept. */
  readonly last: number;
  readonly oldest: number;
} & (LogEvent | { readonly [K in keyof LogEvent]: null });

/** One event more than is asked for, among as many as one request looks at. */
export function logStatement(schema: string, { after, types, objects, take }: Asked): Statement {
  const sql = new Sql();
  const from = after === null ? 'place.last' : sql.bind(after, 'bigint');
  const about = objects === null ? '' : ` AND object = ANY(${sql.bind(objects, 'text[]')})`;
  return sql.statement(`WITH place AS MATERIALIZED (
      SELECT ${epochColumns(schema)}, head.sequence AS last,
        ${oldestSql(schema)} AS oldest
      FROM ${schema}._epoch epoch CROSS JOIN ${schema}._event_head head)
    SELECT place.*, event.* FROM place LEFT JOIN LATERAL (
      SELECT ${LOG_COLUMNS}
      FROM ${schema}._outbox
      WHERE sequence > ${from} AND sequence <= ${from} + ${LIMITS.events_scan_max}
        AND type = ANY(${sql.bind(types, 'text[]')})${about}
      ORDER BY sequence LIMIT ${take + 1}) event ON true
    ORDER BY event.sequence`);
}
