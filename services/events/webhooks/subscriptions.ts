/** Subscriptions: created, changed and listed by the user in whose name they read events. Source: docs/reference/webhooks.md. */
import { isIP } from 'node:net';
import { EVENT_TYPE_NAMES } from '../../../contracts/event-types.ts';
import type { SubscriptionBody } from '../../../contracts/events.ts';
import { addressOf, type Handler } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { OperationCall, OperationReply } from '../../../lib/operation.ts';
import { listPage } from '../../../lib/query/list-page.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { isUuid, uuidv7 } from '../../../lib/values/ids.ts';
import { sealFor } from '../../../lib/values/sealed.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { mutate } from '../../../mixins/mutation/mutate.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import { etagOf, requireVersion } from '../../../mixins/mutation/version.ts';
import { isPublicAddress } from '../../../mixins/public-addresses.ts';
import type { EventsDeps } from '../deps.ts';
import { sequenceText } from '../log/cloud-event.ts';
import type { LogEvent } from '../log/log.sql.ts';
import { openPosition, sealPosition } from '../read/cursor.ts';
import { addressed } from './deliver.ts';
import {
  type DeliveryRow,
  deliveriesStatement,
  queueStatement,
  rangeStatement,
  retryFailedStatement,
  spanStatement,
  subscribedStatement,
} from './delivery.sql.ts';
import { addSecret } from './secrets.ts';
import {
  countStatement,
  deleteStatement,
  insertStatement,
  lockTenantStatement,
  type SubscriptionRow,
  subscriptionStatement,
  subscriptionsStatement,
  updateStatement,
} from './subscription.sql.ts';

const change = (
  { database }: EventsDeps,
  request: RequestContext,
  call: OperationCall,
  work: (unit: Unit) => Promise<OperationReply>,
): Promise<OperationReply> => mutate(database, request, call, { role: { service: 'events' }, work });

export const createSubscription: Handler<'events.subscriptions.create', EventsDeps> = (deps, request, call) => {
  const { tenantId, userId, clientId, grantId } = request;
  const { name, url, eventTypes, objects = [], payload = 'thin', ordering = 'none', signing = 'hmac' } = call.body;
  checkSettings(deps, request, { url, eventTypes, payload });
  return change(deps, request, call, async (unit) => {
    const { tx } = unit;
    await tx.query(lockTenantStatement(tenantId));
    const { ofTenant, ofUser } = await tx.one<{ ofTenant: number; ofUser: number }>(countStatement(tenantId, userId));
    refuseTooMany(ofUser, LIMITS.subscriptions_of_user_max, 'user');
    refuseTooMany(ofTenant, LIMITS.subscriptions_of_tenant_max, 'tenant');
    unit.actAs('tenant');
    const { last } = await tx.one<{ last: number }>(rangeStatement(unit.schema));
    unit.actAs({ service: 'events' });
    const subscriptionId = uuidv7();
    const { secret, ...keys } = addSecret(deps, tenantId, subscriptionId, signing);
    const given = { subscriptionId, userId, clientId, name, url, eventTypes, objects, payload, ordering, signing };
    const row = await tx.one<SubscriptionRow>(
      insertStatement(tenantId, { ...given, ...keys, grantId, position: last }),
    );
    unit.audit({ recordId: subscriptionId, kind: 'create', changes: changesOf({}, given) });
    const body = present(deps, request, row, await epochIn(unit));
    const headers = { ETag: etagOf(row), Location: addressOf('events.subscriptions.get', { subscriptionId }) };
    return { status: 201, headers, body: { ...body, secret }, kept: { ...body, secret: null } };
  });
};

export const listSubscriptions: Handler<'events.subscriptions.list', EventsDeps> = (deps, request, { query }) => {
  const list = { name: 'events.subscriptions', parameters: {} };
  const seal = sealFor(request, deps.sealingKeys, platformTime());
  const { tenantId, userId } = request;
  return listPage(list, parseListQuery(query, 'query'), seal, {
    rows: ([after = null], take) =>
      deps.database.shared('events', tenantId, (tx) =>
        tx.all<SubscriptionRow>(subscriptionsStatement(tenantId, userId, after, take)),
      ),
    keys: ({ subscriptionId }) => [subscriptionId],
    present: async (page) => {
      const epoch = await epochOf(deps, tenantId);
      return page.map((row) => present(deps, request, row, epoch));
    },
  });
};

export const getSubscription: Handler<'events.subscriptions.get', EventsDeps> = async (deps, request, { path }) => {
  const row = await readOwn(deps, request, path.subscriptionId);
  const epoch = await epochOf(deps, request.tenantId);
  return { headers: { ETag: etagOf(row) }, body: present(deps, request, row, epoch) };
};

export const updateSubscription: Handler<'events.subscriptions.update', EventsDeps> = async (deps, request, call) => {
  const { body } = call;
  const { tenantId } = request;
  const reply = await change(deps, request, call, async (unit) => {
    const before = await lockedOwn(unit, call.path.subscriptionId, call.headers.ifMatch);
    checkSettings(deps, request, {
      ...(body.url === undefined ? {} : { url: body.url }),
      eventTypes: body.eventTypes ?? before.eventTypes,
      payload: body.payload ?? before.payload,
    });
    const changes = {
      ...body,
      ...(body.state === undefined ? {} : { reason: null }),
      ...(body.state === 'active' ? { clientId: request.clientId, grantId: request.grantId } : {}),
    };
    const row = await unit.tx.one<SubscriptionRow>(updateStatement(tenantId, before.subscriptionId, changes));
    unit.audit({ recordId: row.subscriptionId, kind: 'update', changes: changesOf(before, body) });
    return { headers: { ETag: etagOf(row) }, body: present(deps, request, row, await epochIn(unit)) };
  });
  await deps.deliveries.add({ tenantId, subscriptionIds: [call.path.subscriptionId.toLowerCase()] });
  return reply;
};

export const deleteSubscription: Handler<'events.subscriptions.delete', EventsDeps> = (deps, request, call) =>
  change(deps, request, call, async (unit) => {
    const { subscriptionId, name } = await lockedOwn(unit, call.path.subscriptionId, call.headers.ifMatch);
    await unit.tx.query(deleteStatement(request.tenantId, subscriptionId));
    unit.audit({ recordId: subscriptionId, kind: 'delete', changes: changesOf({ name }, { name: null }) });
    return { status: 204, body: null };
  });

export const rotateSecret: Handler<'events.subscriptions.rotateSecret', EventsDeps> = (deps, request, call) =>
  change(deps, request, call, async (unit) => {
    const { tenantId } = request;
    const before = await lockedOwn(unit, call.path.subscriptionId, null);
    const { subscriptionId } = before;
    const { secret, ...keys } = addSecret(deps, tenantId, subscriptionId, before.signing, before.secrets);
    const row = await unit.tx.one<SubscriptionRow>(updateStatement(tenantId, subscriptionId, keys));
    unit.audit({
      recordId: subscriptionId,
      kind: 'update',
      changes: changesOf({ secret: null }, { secret: 'rotated' }),
    });
    const body = present(deps, request, row, await epochIn(unit));
    return { status: 201, headers: { ETag: etagOf(row) }, body: { ...body, secret }, kept: { ...body, secret: null } };
  });

/** The test is an event of its own, which takes the whole way of every other. */
export const testSubscription: Handler<'events.subscriptions.test', EventsDeps> = (deps, request, call) =>
  change(deps, request, call, async (unit) => {
    const { subscriptionId, userId } = await lockedOwn(unit, call.path.subscriptionId, null);
    const deliveryId = uuidv7();
    const type = 'events.subscription.tested';
    unit.emit({ type, data: { subscriptionId, userId, deliveryId } });
    const now = platformTime();
    const delivery = { deliveryId, sequence: null, eventType: type, subject: `subscriptions/${subscriptionId}` };
    return {
      status: 201,
      body: presentDelivery(
        { ...delivery, status: 'pending', attempts: [], tries: 0, nextAt: now, createdAt: now },
        null,
      ),
    };
  });

export const replayEvents: Handler<'events.subscriptions.replay', EventsDeps> = async (deps, request, call) => {
  const { tenantId } = request;
  const { fromCursor, fromTime = null, toTime = null, onlyFailed = false } = call.body;
  const seal = sealFor(request, deps.sealingKeys, platformTime());
  const position = fromCursor === undefined ? null : openPosition(fromCursor, seal, '/fromCursor');
  if (fromTime !== null && toTime !== null && Date.parse(toTime) < Date.parse(fromTime))
    throw new PlatformError('PARAMETER_INVALID', 'toTime is before fromTime.', {
      errors: [violation('/toTime', 'PARAMETER_INVALID', 'toTime is before fromTime.')],
    });
  const reply = await change(deps, request, call, async (unit) => {
    const row = await lockedOwn(unit, call.path.subscriptionId, null);
    const { subscriptionId } = row;
    const range = { after: position?.sequence ?? 0, from: fromTime, until: toTime };
    const count = await (onlyFailed ? retryFailed(unit, row, range) : queueAgain(unit, row, range));
    unit.audit({
      recordId: subscriptionId,
      kind: 'update',
      changes: changesOf({ replayed: null }, { replayed: count }),
    });
    // Events of a time that the user cannot see are left out later, when they are sent.
    return { status: 202, body: { subscriptionId, events: onlyFailed ? count : null } };
  });
  await deps.deliveries.add({ tenantId, subscriptionIds: [call.path.subscriptionId.toLowerCase()] });
  return reply;
};

interface ReplayRange {
  readonly after: number;
  readonly from: string | null;
  readonly until: string | null;
}

async function retryFailed(unit: Unit, { subscriptionId }: SubscriptionRow, range: ReplayRange): Promise<number> {
  const { tx, request } = unit;
  let span: { readonly first: number | null; readonly last: number | null } = { first: range.after + 1, last: null };
  if (range.from !== null || range.until !== null) {
    unit.actAs('tenant');
    span = await tx.one(spanStatement(unit.schema, range));
    unit.actAs({ service: 'events' });
  }
  const { first, last } = span;
  if (first === null) return 0;
  const { count } = await tx.one<{ count: number }>(
    retryFailedStatement(request.tenantId, subscriptionId, { first, last }),
  );
  return count;
}

async function queueAgain(unit: Unit, row: SubscriptionRow, range: ReplayRange): Promise<number> {
  const { tx, request } = unit;
  unit.actAs('tenant');
  const events = await tx.all<LogEvent>(
    subscribedStatement(unit.schema, row, { ...range, upTo: row.position, take: LIMITS.replay_events_max }),
  );
  unit.actAs({ service: 'events' });
  if (events.length > 0) await tx.query(queueStatement(request.tenantId, row.subscriptionId, events.map(addressed)));
  return events.length;
}

export const listDeliveries: Handler<'events.deliveries.list', EventsDeps> = async (deps, request, { path, query }) => {
  const { subscriptionId } = await readOwn(deps, request, path.subscriptionId);
  const { status = null, ...paging } = query;
  const list = { name: 'events.deliveries', parameters: { subscriptionId, status } };
  const seal = sealFor(request, deps.sealingKeys, platformTime());
  const { tenantId } = request;
  return listPage(list, parseListQuery(paging, 'query'), seal, {
    rows: ([before], take) =>
      deps.database.shared('events', tenantId, (tx) =>
        tx.all<DeliveryRow>(
          deliveriesStatement(tenantId, subscriptionId, {
            status,
            before: before === undefined ? null : Number(before),
            take,
          }),
        ),
      ),
    keys: ({ sequence }) => [String(sequence)],
    present: async (page) => {
      const epoch = await epochOf(deps, tenantId);
      return page.map((row) => presentDelivery(row, sealPosition({ epoch, sequence: row.sequence - 1 }, seal)));
    },
  });
};

/** The user's subscription; 404 for everybody else's. */
async function readOwn(
  { database }: EventsDeps,
  { tenantId, userId }: RequestContext,
  id: string,
): Promise<SubscriptionRow> {
  const row = isUuid(id)
    ? await database.shared('events', tenantId, (tx) =>
        tx.first<SubscriptionRow>(subscriptionStatement(tenantId, id, userId)),
      )
    : null;
  if (!row) throw notFound();
  return row;
}

async function lockedOwn({ tx, request }: Unit, id: string, ifMatch: string | null): Promise<SubscriptionRow> {
  const { tenantId, userId } = request;
  const row = isUuid(id)
    ? await tx.first<SubscriptionRow>(subscriptionStatement(tenantId, id, userId, 'FOR UPDATE'))
    : null;
  if (!row) throw notFound();
  if (ifMatch !== null) requireVersion(row, ifMatch, 'subscription');
  return row;
}

const notFound = (): PlatformError =>
  new PlatformError('SUBSCRIPTION_NOT_FOUND', 'The subscription does not exist, or belongs to another user.');

function refuseTooMany(count: number, max: number, of: 'user' | 'tenant'): void {
  if (count < max) return;
  throw new PlatformError('TOO_MANY_ITEMS', `A ${of} can have at most ${max} subscriptions.`, { details: { max } });
}

/** Checks what the schema of the body does not. */
function checkSettings(
  { privateHosts }: EventsDeps,
  { scopes }: RequestContext,
  {
    url,
    eventTypes,
    payload,
  }: { readonly url?: string; readonly eventTypes: readonly string[]; readonly payload: 'thin' | 'full' },
): void {
  if (payload === 'full' && !scopes.includes('data:read'))
    throw new PlatformError('SCOPE_INSUFFICIENT', 'The values of fields take the scope data:read.', {
      details: { required: ['events:manage', 'data:read'] },
    });
  const unknown = eventTypes.flatMap((type, i) =>
    EVENT_TYPE_NAMES.includes(type)
      ? []
      : [
          violation(
            `/eventTypes/${i}`,
            'PARAMETER_INVALID',
            `There is no event of type ${type}: GET /capabilities lists them in events.types.`,
          ),
        ],
  );
  if (unknown.length > 0)
    throw new PlatformError('PARAMETER_INVALID', 'eventTypes names types that there are not.', { errors: unknown });
  const problem = url === undefined ? null : urlProblem(url, privateHosts);
  if (problem !== null)
    throw new PlatformError('WEBHOOK_URL_INVALID', problem, {
      errors: [violation('/url', 'WEBHOOK_URL_INVALID', problem)],
    });
}

/** The host is looked up when it is connected to, each time. */
function urlProblem(text: string, privateHosts: readonly string[]): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url) return 'url must be an absolute address.';
  const isAllowed = privateHosts.includes(url.host) || privateHosts.includes(url.hostname);
  if (url.protocol !== 'https:' && !(isAllowed && url.protocol === 'http:')) return 'url must be an https address.';
  if (url.username !== '' || url.password !== '') return 'url must not contain a user name or password.';
  const host = url.hostname.replace(/^\[|\]$|\.$/g, '');
  const isPublic = isIP(host) === 0 ? host.includes('.') && !host.endsWith('.localhost') : isPublicAddress(host);
  if (!isAllowed && !isPublic) return 'url must lead to a public address.';
  return null;
}

function changesOf(before: object, after: object): Record<string, { from: unknown; to: unknown }> {
  const earlier = new Map<string, unknown>(Object.entries(before));
  return Object.fromEntries(Object.entries(after).map(([name, to]) => [name, { from: earlier.get(name) ?? null, to }]));
}

const epochStatement = (schema: string): Statement => ({ text: `SELECT epoch FROM ${schema}._epoch` });

const epochOf = async ({ database }: EventsDeps, tenantId: string): Promise<string> =>
  (await database.tenant(tenantId, (tx) => tx.one<{ epoch: string }>(epochStatement(tx.schema)))).epoch;

async function epochIn(unit: Unit): Promise<string> {
  unit.actAs('tenant');
  const { epoch } = await unit.tx.one<{ epoch: string }>(epochStatement(unit.schema));
  unit.actAs({ service: 'events' });
  return epoch;
}

function present(deps: EventsDeps, request: RequestContext, row: SubscriptionRow, epoch: string): SubscriptionBody {
  const seal = sealFor(request, deps.sealingKeys, platformTime());
  return {
    subscriptionId: row.subscriptionId,
    name: row.name,
    url: row.url,
    eventTypes: [...row.eventTypes],
    objects: [...row.objects],
    payload: row.payload,
    ordering: row.ordering,
    state: row.state,
    reason: row.reason,
    signing: row.signing,
    publicKey: row.publicKey,
    cursor: sealPosition({ epoch, sequence: row.position }, seal),
    failureCount: row.failureCount,
    createdAt: formatTimestamp(row.createdAt),
    createdById: row.userId,
    updatedAt: formatTimestamp(row.updatedAt),
  };
}

type Shown = Omit<DeliveryRow, 'sequence'> & { readonly sequence: number | null };

const presentDelivery = (row: Shown, cursor: string | null) => ({
  deliveryId: row.deliveryId,
  sequence: row.sequence === null ? null : sequenceText(row.sequence),
  cursor,
  eventType: row.eventType,
  subject: row.subject,
  status: row.status,
  attempts: row.attempts,
  nextAttemptAt: row.status === 'pending' ? formatTimestamp(row.nextAt) : null,
  createdAt: formatTimestamp(row.createdAt),
});
