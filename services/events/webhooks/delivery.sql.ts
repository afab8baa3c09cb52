/** The statements about deliveries. They run as the role of the service, but for those that read the log. */
import type { DeliveryAttempt, DeliveryStatus } from '../../../contracts/events.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { LOG_COLUMNS, type LogEvent, milliseconds, oldestSql } from '../log/log.sql.ts';
import { REVOKED, SUBSCRIPTION_COLUMNS, type SubscriptionRow, TEST } from './subscription.sql.ts';

export interface DeliveryRow {
  readonly deliveryId: string;
  readonly sequence: number;
  readonly eventType: string;
  readonly subject: string;
  readonly status: DeliveryStatus;
  readonly attempts: readonly DeliveryAttempt[];
  /** Attempts since it was queued, or sent again. */
  readonly tries: number;
  readonly nextAt: number;
  readonly createdAt: number;
}

const COLUMNS = `delivery_id AS "deliveryId", sequence, event_type AS "eventType", subject, status, attempts, tries,
  ${milliseconds('next_at')} AS "nextAt", ${milliseconds('created_at')} AS "createdAt"`;

/** The latest attempts of a delivery are kept, so many, also those before it was sent again. */
const ATTEMPTS_MAX = 20;

const ofSubscription = (sql: Sql, tenantId: string, subscriptionId: string, alias = ''): string =>
  `${alias}tenant_id = ${sql.bind(tenantId, 'uuid')} AND ${alias}subscription_id = ${sql.bind(subscriptionId, 'uuid')}`;

/** SQL: the subscription takes the event. */
function takesSql(sql: Sql, { subscriptionId, eventTypes, objects }: SubscriptionRow): string {
  const about = objects.length === 0 ? '' : ` AND object = ANY(${sql.bind([...objects], 'text[]')})`;
  return `((type <> '${TEST}' AND type = ANY(${sql.bind([...eventTypes], 'text[]')})${about})
    OR (type = '${TEST}' AND data ->> 'subscriptionId' = ${sql.bind(subscriptionId, 'text')}))`;
}

/** Among those of followingStatement, which end connections of others as well. */
export const takes = ({ eventTypes, objects }: SubscriptionRow, { type, object }: LogEvent): boolean =>
  type !== REVOKED || (eventTypes.includes(REVOKED) && (objects.length === 0 || objects.includes(object ?? '')));

/** The event is the end of the connection that made the subscription, by its user. */
export const endsConnection = ({ grantId }: SubscriptionRow, { type, data }: LogEvent): boolean =>
  type === REVOKED && data['connectionId'] === grantId;

interface Span {
  readonly after: number;
  readonly upTo: number;
  readonly from: string | null;
  readonly until: string | null;
  readonly take: number;
}

/** As the tenant's role: earlier events that a subscription takes, without tests of it. */
export function subscribedStatement(
  schema: string,
  row: SubscriptionRow,
  { after, upTo, from, until, take }: Span,
): Statement {
  const sql = new Sql();
  const since = from === null ? '' : ` AND at >= ${sql.bind(from, 'timestamptz')}`;
  const before = until === null ? '' : ` AND at <= ${sql.bind(until, 'timestamptz')}`;
  return sql.statement(`SELECT ${LOG_COLUMNS} FROM ${schema}._outbox
    WHERE sequence > ${sql.bind(after, 'bigint')} AND sequence <= ${sql.bind(upTo, 'bigint')}
      AND type <> '${TEST}' AND ${takesSql(sql, row)}${since}${before}
    ORDER BY sequence LIMIT ${take}`);
}

/** There is at least one row; its event is null when there is none. */
export type FollowingRow = { readonly last: number; readonly oldest: number } & (
  | LogEvent
  | { readonly [K in keyof LogEvent]: null }
);

/**
 * As the tenant's role: the first events behind the position of a subscription that it takes, and those that end connections, of as much
 * of the log as one round looks at. In a database that was restored, the log may end before the position.
 */
export function followingStatement(schema: string, row: SubscriptionRow, take: number): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT place.last, place.oldest, event.* FROM (
      SELECT range.*, least(greatest(${sql.bind(row.position, 'bigint')}, oldest), last) AS after
      FROM (${rangeStatement(schema).text}) range) place
    LEFT JOIN LATERAL (
      SELECT ${LOG_COLUMNS} FROM ${schema}._outbox
      WHERE sequence > place.after AND sequence <= place.after + ${LIMITS.events_scan_max}
        AND (${takesSql(sql, row)} OR type = '${REVOKED}')
      ORDER BY sequence LIMIT ${take}) event ON true
    ORDER BY event.sequence`);
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

/** An event for a subscription, which it is delivered to or will be. */
export interface Addressed {
  readonly deliveryId: string;
  readonly sequence: number;
  readonly eventType: string;
  readonly subject: string;
}

/** SQL: a table of these events, the columns of which have the names of those of deliveries. */
function addressedSql(sql: Sql, events: readonly Addressed[], more: Readonly<Record<string, string>> = {}): string {
  const column = (name: keyof Addressed, type: string): string =>
    sql.bind(
      events.map((event) => event[name]),
      type,
    );
  const columns = [
    column('deliveryId', 'uuid[]'),
    column('sequence', 'bigint[]'),
    column('eventType', 'text[]'),
    column('subject', 'text[]'),
  ];
  return `unnest(${[...columns, ...Object.values(more)].join(', ')})
    event(${['delivery_id', 'sequence', 'event_type', 'subject', ...Object.keys(more)].join(', ')})`;
}

/** The events are delivered, whether they were before or not. */
export function queueStatement(tenantId: string, subscriptionId: string, events: readonly Addressed[]): Statement {
  const sql = new Sql();
  return sql.statement(`INSERT INTO events.deliveries (tenant_id, subscription_id, delivery_id, sequence, event_type, subject)
    SELECT ${sql.bind(tenantId, 'uuid')}, ${sql.bind(subscriptionId, 'uuid')}, event.* FROM ${addressedSql(sql, events)}
    ON CONFLICT (tenant_id, subscription_id, sequence) DO UPDATE SET status = 'pending', tries = 0, next_at = now()`);
}

/** As the tenant's role: the numbers of the first and the last event of a time; null: it has none. */
export function spanStatement(schema: string, { after, from, until }: Omit<Span, 'upTo' | 'take'>): Statement {
  const sql = new Sql();
  const since = from === null ? '' : ` AND at >= ${sql.bind(from, 'timestamptz')}`;
  const before = until === null ? '' : ` AND at <= ${sql.bind(until, 'timestamptz')}`;
  return sql.statement(`SELECT min(sequence) AS first, max(sequence) AS last FROM ${schema}._outbox
    WHERE sequence > ${sql.bind(after, 'bigint')}${since}${before}`);
}

/** Deliveries whose last attempt failed are tried again now: those that are parked, and those that wait for their next attempt. */
export function retryFailedStatement(
  tenantId: string,
  subscriptionId: string,
  { first, last }: { readonly first: number; readonly last: number | null },
): Statement {
  const sql = new Sql();
  const upTo = last === null ? '' : ` AND sequence <= ${sql.bind(last, 'bigint')}`;
  return sql.statement(`WITH again AS (
      UPDATE events.deliveries SET status = 'pending', tries = 0, next_at = now()
      WHERE ${ofSubscription(sql, tenantId, subscriptionId)} AND (status = 'parked' OR (status = 'pending' AND tries > 0))
        AND sequence >= ${sql.bind(first, 'bigint')}${upTo} RETURNING 1)
    SELECT count(*)::int AS count FROM again`);
}

export interface Pending {
  readonly pending: number;
  /** Seconds until the next one is due that is not yet; null: there is none. */
  readonly dueInSeconds: number | null;
}

/** SQL: no earlier event about the same is waiting, where that matters. The table has an alias. */
function isNext(sql: Sql, tenantId: string, subscriptionId: string, alias: string): string {
  const ofSame = (other: string): string => ofSubscription(sql, tenantId, subscriptionId, other);
  return `((SELECT ordering FROM events.subscriptions one WHERE ${ofSame('one.')}) = 'none' OR NOT EXISTS (
      SELECT FROM events.deliveries earlier
      WHERE ${ofSame('earlier.')} AND earlier.status = 'pending'
        AND earlier.subject = ${alias}.subject AND earlier.sequence < ${alias}.sequence))`;
}

export function pendingStatement(tenantId: string, subscriptionId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT count(*)::int AS pending,
      extract(epoch FROM min(next_at) FILTER (WHERE next_at > now() AND ${isNext(sql, tenantId, subscriptionId, 'waiting')}) - now())::float8 AS "dueInSeconds"
    FROM events.deliveries waiting
    WHERE ${ofSubscription(sql, tenantId, subscriptionId, 'waiting.')} AND waiting.status = 'pending'`);
}

/** With `perRecord` an event waits for the earlier ones about the same. */
export function dueStatement(tenantId: string, subscriptionId: string, take: number): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT ${COLUMNS} FROM events.deliveries due
    WHERE ${ofSubscription(sql, tenantId, subscriptionId, 'due.')} AND due.status = 'pending' AND due.next_at <= now()
      AND ${isNext(sql, tenantId, subscriptionId, 'due')}
    ORDER BY due.sequence LIMIT ${take}`);
}

/** Of these, the ones that events wait for which are about the same. */
export function waitingSubjectsStatement(
  tenantId: string,
  subscriptionId: string,
  subjects: readonly string[],
): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT DISTINCT subject FROM events.deliveries
    WHERE ${ofSubscription(sql, tenantId, subscriptionId)} AND status = 'pending' AND subject = ANY(${sql.bind([...subjects], 'text[]')})`);
}

export interface Outcome extends Addressed {
  readonly status: DeliveryStatus;
  /** null: there was none. */
  readonly attempt: DeliveryAttempt | null;
  /** Until the next attempt. */
  readonly waitSeconds: number;
}

/** How far a round came, and how its attempts have ended. */
interface Noted {
  readonly upTo: number;
  readonly tried: number;
  readonly succeeded: boolean;
  readonly outcomes: readonly Outcome[];
}

/**
 * Notes a round: one row, the subscription as it is then, or none when it was deleted meanwhile. The position stays where another round
 * has moved it.
 */
export function noteRoundStatement(
  tenantId: string,
  { subscriptionId, position }: SubscriptionRow,
  { upTo, tried, succeeded, outcomes }: Noted,
): Statement {
  const sql = new Sql();
  const from = sql.bind(position, 'bigint');
  const failures = (): string =>
    `, failing_since = coalesce(failing_since, now()), failure_count = failure_count + ${sql.bind(tried, 'integer')}`;
  const attempts = tried === 0 ? '' : succeeded ? ', failing_since = NULL, failure_count = 0' : failures();
  const note = `UPDATE events.subscriptions SET position = CASE position WHEN ${from} THEN ${sql.bind(upTo, 'bigint')} ELSE position END${attempts}
    WHERE ${ofSubscription(sql, tenantId, subscriptionId)} RETURNING ${SUBSCRIPTION_COLUMNS}`;
  if (outcomes.length === 0) return sql.statement(note);
  const column = (name: 'status' | 'waitSeconds', type: string): string =>
    sql.bind(
      outcomes.map((outcome) => outcome[name]),
      type,
    );
  const made = outcomes.map(({ attempt }) => JSON.stringify(attempt === null ? [] : [attempt]));
  const more = {
    status: column('status', 'text[]'),
    attempts: sql.bind(made, 'jsonb[]'),
    wait_seconds: column('waitSeconds', 'float8[]'),
  };
  return sql.statement(`WITH noted AS (${note}),
    kept AS (
      INSERT INTO events.deliveries AS delivery
        (tenant_id, subscription_id, delivery_id, sequence, event_type, subject, status, attempts, tries, next_at)
      SELECT ${sql.bind(tenantId, 'uuid')}, ${sql.bind(subscriptionId, 'uuid')}, delivery_id, sequence, event_type, subject, status,
        attempts, jsonb_array_length(attempts), now() + make_interval(secs => wait_seconds)
      FROM ${addressedSql(sql, outcomes, more)} WHERE EXISTS (SELECT FROM noted)
      ON CONFLICT (tenant_id, subscription_id, sequence) DO UPDATE
        SET status = excluded.status, tries = delivery.tries + excluded.tries, next_at = excluded.next_at,
          attempts = CASE WHEN jsonb_array_length(delivery.attempts) < ${ATTEMPTS_MAX} THEN delivery.attempts
            ELSE delivery.attempts - 0 END || excluded.attempts)
    SELECT * FROM noted`);
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
