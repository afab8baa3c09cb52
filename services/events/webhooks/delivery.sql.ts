/** The statements about deliveries. They run as the role of the service, but for those that read the log. */
import type { DeliveryAttempt, DeliveryStatus } from '../../../contracts/events.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { LOG_COLUMNS, type LogEvent, milliseconds, oldestSql } from '../log/log.sql.ts';
import type { SubscriptionRow } from './subscription.sql.ts';

export interface DeliveryRow {
  readonly deliveryId: string;
  readonly sequence: number;
  readonly eventType: string;
  readonly subject: string;
  readonly status: DeliveryStatus;
  readonly attempts: readonly DeliveryAttempt[];
  readonly nextAt: number;
  readonly createdAt: number;
}

const COLUMNS = `delivery_id AS "deliveryId", sequence, event_type AS "eventType", subject, status, attempts,
  ${milliseconds('next_at')} AS "nextAt", ${milliseconds('created_at')} AS "createdAt"`;

const ofSubscription = (sql: Sql, tenantId: string, subscriptionId: string, alias = ''): string =>
  `${alias}tenant_id = ${sql.bind(tenantId, 'uuid')} AND ${alias}subscription_id = ${sql.bind(subscriptionId, 'uuid')}`;

/** A test that was asked for is for its subscription alone, whatever types that takes, and for no other that takes them. */
const TEST = 'events.subscription.tested';

interface Span {
  readonly after: number;
  readonly upTo: number;
  readonly from?: string | null;
  readonly until?: string | null;
  /** null: all. */
  readonly take?: number | null;
}

/** As the tenant's role: the events that a subscription takes. */
export function subscribedStatement(
  schema: string,
  { subscriptionId, eventTypes, objects }: SubscriptionRow,
  { after, upTo, from = null, until = null, take = null }: Span,
): Statement {
  const sql = new Sql();
  const about = objects.length === 0 ? '' : ` AND object = ANY(${sql.bind([...objects], 'text[]')})`;
  const since = from === null ? '' : ` AND at >= ${sql.bind(from, 'timestamptz')}`;
  const before = until === null ? '' : ` AND at <= ${sql.bind(until, 'timestamptz')}`;
  return sql.statement(`SELECT ${LOG_COLUMNS} FROM ${schema}._outbox
    WHERE sequence > ${sql.bind(after, 'bigint')} AND sequence <= ${sql.bind(upTo, 'bigint')}
      AND ((type <> '${TEST}' AND type = ANY(${sql.bind([...eventTypes], 'text[]')})${about})
        OR (type = '${TEST}' AND data ->> 'subscriptionId' = ${sql.bind(subscriptionId, 'text')}))${since}${before}
    ORDER BY sequence${take === null ? '' : ` LIMIT ${take}`}`);
}

/** As the tenant's role: whether the connection was ended by its user in this part of the log. */
export function revokedStatement(schema: string, grantId: string, { after, upTo }: Span): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT 1 AS revoked FROM ${schema}._outbox
    WHERE sequence > ${sql.bind(after, 'bigint')} AND sequence <= ${sql.bind(upTo, 'bigint')}
      AND type = 'me.connection.revoked' AND data ->> 'connectionId' = ${sql.bind(grantId, 'text')}`);
}

/** As the tenant's role: these events, as far as they are kept. */
export function eventsStatement(schema: string, sequences: readonly number[]): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT ${LOG_COLUMNS} FROM ${schema}._outbox WHERE sequence = ANY(${sql.bind([...sequences], 'bigint[]')}) ORDER BY sequence`,
  );
}

/** As the tenant's role: the numbers between which events are kept. */
export const rangeStatement = (schema: string): Statement => ({
  text: `SELECT head.sequence AS last, ${oldestSql(schema)} AS oldest FROM ${schema}._event_head head`,
});

/** An event that has a delivery already is delivered again only where `again` says so. */
export function queueStatement(
  tenantId: string,
  subscriptionId: string,
  events: readonly { readonly event: LogEvent; readonly deliveryId: string; readonly subject: string }[],
  again: boolean,
): Statement {
  const sql = new Sql();
  const column = (values: readonly unknown[], type: string): string => sql.bind([...values], type);
  return sql.statement(`INSERT INTO events.deliveries (tenant_id, subscription_id, delivery_id, sequence, event_type, subject)
    SELECT ${sql.bind(tenantId, 'uuid')}, ${sql.bind(subscriptionId, 'uuid')}, event.* FROM unnest(
      ${column(
        events.map(({ deliveryId }) => deliveryId),
        'uuid[]',
      )}, ${column(
        events.map(({ event }) => event.sequence),
        'bigint[]',
      )}, ${column(
        events.map(({ event }) => event.type),
        'text[]',
      )}, ${column(
        events.map(({ subject }) => subject),
        'text[]',
      )}) event
    ON CONFLICT (tenant_id, subscription_id, sequence) DO ${
      again ? "UPDATE SET status = 'pending', attempts = '[]', next_at = now()" : 'NOTHING'
    }`);
}

/** Deliveries whose last attempt failed are tried again. */
export function retryParkedStatement(
  tenantId: string,
  subscriptionId: string,
  { after, from, until }: { readonly after: number; readonly from: string | null; readonly until: string | null },
): Statement {
  const sql = new Sql();
  const since = from === null ? '' : ` AND created_at >= ${sql.bind(from, 'timestamptz')}`;
  const before = until === null ? '' : ` AND created_at <= ${sql.bind(until, 'timestamptz')}`;
  return sql.statement(`WITH again AS (
      UPDATE events.deliveries SET status = 'pending', attempts = '[]', next_at = now()
      WHERE ${ofSubscription(sql, tenantId, subscriptionId)} AND status = 'parked'
        AND sequence > ${sql.bind(after, 'bigint')}${since}${before} RETURNING 1)
    SELECT count(*)::int AS count FROM again`);
}

export interface Pending {
  readonly pending: number;
  /** Seconds until the next one is due; null: none waits. */
  readonly dueInSeconds: number | null;
}

/** SQL: no earlier event about the same is waiting, where that matters. */
function isNext(sql: Sql, tenantId: string, { subscriptionId, ordering }: SubscriptionRow, alias: string): string {
  if (ordering === 'none') return 'true';
  return `NOT EXISTS (SELECT FROM events.deliveries earlier
      WHERE ${ofSubscription(sql, tenantId, subscriptionId, 'earlier.')} AND earlier.status = 'pending'
        AND earlier.subject = ${alias}.subject AND earlier.sequence < ${alias}.sequence)`;
}

export function pendingStatement(tenantId: string, row: SubscriptionRow): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT count(*)::int AS pending,
      extract(epoch FROM min(next_at) FILTER (WHERE ${isNext(sql, tenantId, row, 'waiting')}) - now())::float8 AS "dueInSeconds"
    FROM events.deliveries waiting
    WHERE ${ofSubscription(sql, tenantId, row.subscriptionId, 'waiting.')} AND waiting.status = 'pending'`);
}

/** With `perRecord` an event waits for the earlier ones about the same. */
export function dueStatement(tenantId: string, row: SubscriptionRow, take: number): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT ${COLUMNS} FROM events.deliveries due
    WHERE ${ofSubscription(sql, tenantId, row.subscriptionId, 'due.')} AND due.status = 'pending' AND due.next_at <= now()
      AND ${isNext(sql, tenantId, row, 'due')}
    ORDER BY due.sequence LIMIT ${take}`);
}

export interface Outcome {
  readonly deliveryId: string;
  readonly status: DeliveryStatus;
  readonly attempt: DeliveryAttempt | null;
  /** Until the next attempt. */
  readonly waitSeconds: number;
}

export function outcomeStatement(tenantId: string, { deliveryId, status, attempt, waitSeconds }: Outcome): Statement {
  const sql = new Sql();
  return sql.statement(`UPDATE events.deliveries SET status = ${sql.bind(status, 'text')},
      attempts = attempts || ${sql.bind(JSON.stringify(attempt === null ? [] : [attempt]), 'jsonb')},
      next_at = now() + make_interval(secs => ${sql.bind(waitSeconds, 'float8')})
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND delivery_id = ${sql.bind(deliveryId, 'uuid')}`);
}

/** The newest ones that were tried, before one with this number: what never was, the user may not know of. */
export function deliveriesStatement(
  tenantId: string,
  subscriptionId: string,
  {
    status,
    before,
    take,
  }: { readonly status: DeliveryStatus | null; readonly before: number | null; readonly take: number },
): Statement {
  const sql = new Sql();
  const ofStatus = status === null ? '' : ` AND status = ${sql.bind(status, 'text')}`;
  const behind = before === null ? '' : ` AND sequence < ${sql.bind(before, 'bigint')}`;
  return sql.statement(`SELECT ${COLUMNS} FROM events.deliveries
    WHERE ${ofSubscription(sql, tenantId, subscriptionId)} AND status <> 'hidden' AND attempts <> '[]'${ofStatus}${behind}
    ORDER BY sequence DESC LIMIT ${take}`);
}

export interface DeliveryNumbers {
  readonly due: number;
  readonly waiting: number;
  readonly parked: number;
  readonly oldestSeconds: number;
}

/** Of all tenants. */
export const deliveryNumbersStatement = (): Statement => ({
  text: `SELECT due, waiting, parked, coalesce(extract(epoch FROM clock_timestamp() - oldest_due), 0)::float8 AS "oldestSeconds"
    FROM events.numbers()`,
});

/** A bounded number of those that are as old as events become. */
export function removeOldStatement(tenantId: string): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM events.deliveries WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND delivery_id IN (
    SELECT delivery_id FROM events.deliveries WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}
      AND created_at < now() - interval '${LIMITS.event_retention_days} days' ORDER BY created_at LIMIT 5000)`);
}
