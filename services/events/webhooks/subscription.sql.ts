/** The statements about subscriptions. They run as the role of the service. */
import type { SubscriptionState } from '../../../contracts/events.ts';
import { namedLockStatement } from '../../../mixins/database/named-lock.sql.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { milliseconds } from '../log/log.sql.ts';
import type { Signing } from './signature.ts';

/** A test that was asked for is for its subscription alone, whatever types that takes, and for no other that takes them. */
export const TEST = 'events.subscription.tested';
/** Ends the subscriptions of a connection, whatever types they take. */
export const REVOKED = 'me.connection.revoked';

/** A secret, sealed. `until`: milliseconds since 1970; null: it is the newest. */
export interface KeptSecret {
  readonly secret: string;
  readonly until: number | null;
}

export interface SubscriptionRow {
  readonly subscriptionId: string;
  readonly userId: string;
  readonly clientId: string;
  /** The connection that has made or activated it. */
  readonly grantId: string;
  readonly name: string;
  readonly url: string;
  readonly eventTypes: readonly string[];
  readonly objects: readonly string[];
  readonly payload: 'thin' | 'full';
  readonly ordering: 'none' | 'perRecord';
  readonly signing: Signing;
  readonly state: SubscriptionState;
  readonly reason: string | null;
  readonly version: number;
  readonly secrets: readonly KeptSecret[];
  readonly publicKey: string | null;
  readonly position: number;
  readonly failingSince: number | null;
  readonly failureCount: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export const SUBSCRIPTION_COLUMNS = `subscription_id AS "subscriptionId", user_id AS "userId", client_id AS "clientId", grant_id AS "grantId", name, url,
  event_types AS "eventTypes", objects, payload, ordering, signing, state, reason, version, secrets,
  public_key AS "publicKey", position, ${milliseconds('failing_since')} AS "failingSince", failure_count AS "failureCount",
  ${milliseconds('created_at')} AS "createdAt", ${milliseconds('updated_at')} AS "updatedAt"`;

/** Those that the user has made; null: of anybody. */
export function subscriptionStatement(
  tenantId: string,
  subscriptionId: string,
  userId: string | null,
  lock = '',
): Statement {
  const sql = new Sql();
  const ofUser = userId === null ? '' : ` AND user_id = ${sql.bind(userId, 'uuid')}`;
  return sql.statement(`SELECT ${SUBSCRIPTION_COLUMNS} FROM events.subscriptions WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND subscription_id = ${sql.bind(subscriptionId, 'uuid')}${ofUser} ${lock}`);
}

export function subscriptionsStatement(
  tenantId: string,
  userId: string,
  after: string | null,
  take: number,
): Statement {
  const sql = new Sql();
  const behind = after === null ? '' : ` AND subscription_id < ${sql.bind(after, 'uuid')}`;
  return sql.statement(`SELECT ${SUBSCRIPTION_COLUMNS} FROM events.subscriptions WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND user_id = ${sql.bind(userId, 'uuid')}${behind} ORDER BY subscription_id DESC LIMIT ${take}`);
}

/** Serializes transactions that count the subscriptions of a tenant. */
export const lockTenantStatement = (tenantId: string): Statement => namedLockStatement(`subscriptions ${tenantId}`);

export function countStatement(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT count(*)::int AS "ofTenant", (count(*) FILTER (WHERE user_id = ${sql.bind(userId, 'uuid')}))::int AS "ofUser"
    FROM events.subscriptions WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}`);
}

type Given = Pick<
  SubscriptionRow,
  'name' | 'url' | 'eventTypes' | 'objects' | 'payload' | 'ordering' | 'signing' | 'secrets' | 'publicKey' | 'position'
> & { readonly subscriptionId: string; readonly userId: string; readonly clientId: string; readonly grantId: string };

export function insertStatement(tenantId: string, given: Given): Statement {
  const sql = new Sql();
  const { bind } = sql;
  return sql.statement(`INSERT INTO events.subscriptions (tenant_id, subscription_id, user_id, client_id, grant_id, name, url, event_types,
      objects, payload, ordering, signing, secrets, public_key, position)
    VALUES (${bind(tenantId, 'uuid')}, ${bind(given.subscriptionId, 'uuid')}, ${bind(given.userId, 'uuid')},
      ${bind(given.clientId, 'text')}, ${bind(given.grantId, 'text')}, ${bind(given.name, 'text')}, ${bind(given.url, 'text')},
      ${bind([...given.eventTypes], 'text[]')}, ${bind([...given.objects], 'text[]')}, ${bind(given.payload, 'text')},
      ${bind(given.ordering, 'text')}, ${bind(given.signing, 'text')}, ${bind(JSON.stringify(given.secrets), 'jsonb')},
      ${bind(given.publicKey, 'text')}, ${bind(given.position, 'bigint')})
    RETURNING ${SUBSCRIPTION_COLUMNS}`);
}

type Change = Partial<
  Pick<
    SubscriptionRow,
    | 'name'
    | 'url'
    | 'eventTypes'
    | 'objects'
    | 'payload'
    | 'ordering'
    | 'state'
    | 'reason'
    | 'secrets'
    | 'publicKey'
    | 'clientId'
    | 'grantId'
  >
>;

const TYPES: Readonly<Record<keyof Change, readonly [column: string, type: string]>> = {
  name: ['name', 'text'],
  url: ['url', 'text'],
  eventTypes: ['event_types', 'text[]'],
  objects: ['objects', 'text[]'],
  payload: ['payload', 'text'],
  ordering: ['ordering', 'text'],
  state: ['state', 'text'],
  reason: ['reason', 'text'],
  secrets: ['secrets', 'jsonb'],
  publicKey: ['public_key', 'text'],
  clientId: ['client_id', 'text'],
  grantId: ['grant_id', 'text'],
};

/** Whatever its state becomes, what has failed before does not count any more. */
export function updateStatement(tenantId: string, subscriptionId: string, change: Change): Statement {
  const sql = new Sql();
  const values = new Map<string, unknown>(Object.entries(change));
  const set = Object.entries(TYPES).flatMap(([name, [column, type]]) => {
    const value = values.get(name);
    if (value === undefined) return [];
    return [`${column} = ${sql.bind(type === 'jsonb' ? JSON.stringify(value) : value, type)}`];
  });
  if (change.state !== undefined) set.push('failing_since = NULL', 'failure_count = 0');
  return sql.statement(`UPDATE events.subscriptions SET ${set.join(', ')}, version = version + 1, updated_at = now()
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND subscription_id = ${sql.bind(subscriptionId, 'uuid')}
    RETURNING ${SUBSCRIPTION_COLUMNS}`);
}

export function deleteStatement(tenantId: string, subscriptionId: string): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM events.subscriptions WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND subscription_id = ${sql.bind(subscriptionId, 'uuid')}`);
}

/** Active ones to which some of these events may be sent. */
export function activeStatement(
  tenantId: string,
  { types, objects }: { readonly types: readonly string[]; readonly objects: readonly string[] },
): Statement {
  const sql = new Sql();
  const ofTenant = `tenant_id = ${sql.bind(tenantId, 'uuid')} AND state = 'active'`;
  const about = types.some((type) => type === TEST || type === REVOKED)
    ? ''
    : ` AND event_types && ${sql.bind(types, 'text[]')} AND (objects = '{}' OR objects && ${sql.bind(objects, 'text[]')})`;
  return sql.statement(
    `SELECT subscription_id AS "subscriptionId" FROM events.subscriptions WHERE ${ofTenant}${about}`,
  );
}

/** Active ones that are behind the last event of the log, or have deliveries that are due within these seconds. */
export function dueSubscriptionsStatement(tenantId: string, last: number, seconds: number): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  return sql.statement(`SELECT subscription_id AS "subscriptionId" FROM events.subscriptions subscription
    WHERE tenant_id = ${tenant} AND state = 'active' AND (position < ${sql.bind(last, 'bigint')} OR EXISTS (
      SELECT FROM events.deliveries waiting
      WHERE waiting.tenant_id = ${tenant} AND waiting.subscription_id = subscription.subscription_id
        AND waiting.status = 'pending' AND waiting.next_at < now() + make_interval(secs => ${seconds})))`);
}
