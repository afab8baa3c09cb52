/**
 * Delivers the events of a subscription to its receiver: a job of the queue `events.deliver`, of which there is one at a time
 * for each subscription. What is to be sent stands in deliveries, so that a process that dies loses nothing; what it was sending is sent
 * again. An event is read when it is sent, as the user of the subscription may know of it then. Source: docs/reference/webhooks.md.
 */
import type { SuspensionReason } from '../../../contracts/event-types.ts';
import type { Asker } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { requestId, uuidv7 } from '../../../lib/values/ids.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import { serviceRole, tenantRole } from '../../../mixins/database/roles.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { CallerSql, outboxSql, platformCaller } from '../../../mixins/mutation/audit.ts';
import type { EventsDeps } from '../deps.ts';
import { eventId, subjectOf } from '../log/cloud-event.ts';
import type { LogEvent } from '../log/log.sql.ts';
import { visibleEvents } from '../log/visible.ts';
import {
  type DeliveryRow,
  dueStatement,
  eventsStatement,
  type Outcome,
  outcomeStatement,
  type Pending,
  pendingStatement,
  queueStatement,
  rangeStatement,
  revokedStatement,
  subscribedStatement,
} from './delivery.sql.ts';
import type { Delivering } from './queue.ts';
import { isHopeless, secondsUntilRetry } from './retries.ts';
import { openSecrets } from './secrets.ts';
import { send, wait } from './send.ts';
import {
  moveStatement,
  noteOutcomesStatement,
  type SubscriptionRow,
  subscriptionStatement,
  updateStatement,
} from './subscription.sql.ts';

/** Read at a time, and sent at a time. */
const DUE = 100;
const BATCH = 20;
/** What was read so long ago is read again before it is sent: its user may know of something else then. */
const FRESH_MS = 1_000;
/** A job ends after so long, so that those of other subscriptions get their turn. */
const TURN_MS = 60_000;
/** A job waits for what is due so soon; the next round finds what is due later. */
const LINGER_SECONDS = 10;
/** So long after its last event, where there is room for others, a job looks for further ones so often: to begin one costs more. */
const BUSY_MS = 2_000;
const LOOK_MS = 500;
/** A delivery for whose host there was no place is tried again. */
const BUSY_HOST_SECONDS = 1;
const ASK_MS = 30_000;

export async function deliver(
  deps: EventsDeps,
  { tenantId, subscriptionId }: Delivering,
  signal: AbortSignal,
): Promise<void> {
  const until = performance.now() + TURN_MS;
  let busyUntil = 0;
  while (!signal.aborted && performance.now() < until) {
    if (await deps.isSuspended(tenantId)) return;
    const queued = await queueEvents(deps, tenantId, subscriptionId);
    if (!queued) return;
    const { row, isBehind } = queued;
    const sent = await sendDue(deps, tenantId, row);
    if (sent === null) return;
    if (sent > 0) busyUntil = performance.now() + BUSY_MS;
    if (isBehind || sent === DUE) continue;
    const { dueInSeconds } = await deps.database.shared('events', tenantId, (tx) =>
      tx.one<Pending>(pendingStatement(tenantId, row)),
    );
    const dueMs = dueInSeconds === null || dueInSeconds > LINGER_SECONDS ? Infinity : dueInSeconds * 1_000;
    const lookMs = performance.now() < busyUntil && deps.deliveries.hasRoom(tenantId) ? LOOK_MS : Infinity;
    const pauseMs = Math.min(dueMs, lookMs);
    if (pauseMs === Infinity) return;
    if (pauseMs > 0 || sent === 0) await wait(Math.max(50, pauseMs), signal);
  }
}

interface Queued {
  readonly row: SubscriptionRow;
  /** The log goes on behind what this round has looked at. */
  readonly isBehind: boolean;
}

/**
 * Makes deliveries of the events that followed, as many as may wait. null: the subscription is not active, or is suspended
 * because its user has ended the connection that made it.
 */
function queueEvents(deps: EventsDeps, tenantId: string, subscriptionId: string): Promise<Queued | null> {
  return deps.database.shared('events', tenantId, async (tx) => {
    const row = await tx.first<SubscriptionRow>(subscriptionStatement(tenantId, subscriptionId, null, 'FOR UPDATE'));
    if (row?.state !== 'active') return null;
    const { pending } = await tx.one<Pending>(pendingStatement(tenantId, row));
    const room = LIMITS.webhook_pending_max - pending;
    if (room <= 0) return { row, isBehind: false };
    tx.actAs(tenantRole(tenantId));
    const { schema } = tx;
    const { last, oldest } = await tx.one<{ last: number; oldest: number }>(rangeStatement(schema));
    // In a database that was restored, the log may end before the position.
    const after = Math.min(Math.max(row.position, oldest), last);
    const upTo = Math.min(last, after + room);
    const span = { after, upTo };
    if (upTo > after && (await tx.first(revokedStatement(schema, row.grantId, span)))) {
      tx.actAs(serviceRole('events', tenantId));
      await suspend(deps, tx, tenantId, row, 'connectionEnded');
      return null;
    }
    const events = upTo > after ? await tx.all<LogEvent>(subscribedStatement(schema, row, span)) : [];
    tx.actAs(serviceRole('events', tenantId));
    if (events.length > 0) await tx.query(queueStatement(tenantId, subscriptionId, events.map(asDelivery), false));
    if (upTo !== row.position) await tx.query(moveStatement(tenantId, subscriptionId, upTo));
    return { row, isBehind: upTo < last };
  });
}

/** A test was given the id of its delivery when it was asked for. */
export function asDelivery(event: LogEvent): { event: LogEvent; deliveryId: string; subject: string } {
  const { deliveryId } = event.data;
  return { event, deliveryId: typeof deliveryId === 'string' ? deliveryId : uuidv7(), subject: subjectOf(event) };
}

/** Sends what is due; answers how many deliveries were. null: the subscription is suspended. */
async function sendDue(deps: EventsDeps, tenantId: string, row: SubscriptionRow): Promise<number | null> {
  const { database } = deps;
  const due = await database.shared('events', tenantId, (tx) => tx.all<DeliveryRow>(dueStatement(tenantId, row, DUE)));
  if (due.length === 0) return 0;
  const events = await database.tenant(tenantId, (tx) =>
    tx.all<LogEvent>(
      eventsStatement(
        tx.schema,
        due.map(({ sequence }) => sequence),
      ),
    ),
  );
  const visible = await asUser(() => visibleEvents(deps, askerOf(tenantId, row), events, row.payload === 'full'));
  if (visible === null || !visible.clientUsable) {
    const reason = visible === null ? 'userInactive' : 'clientDisabled';
    await database.shared('events', tenantId, (tx) => suspend(deps, tx, tenantId, row, reason));
    return null;
  }
  const { cutAt } = visible;
  const texts = new Map(
    visible.events.map(({ event, text }) => [event.sequence, { id: eventId(tenantId, event), body: text }]),
  );
  const secrets = openSecrets(deps, tenantId, row);
  const looked = due.filter(({ sequence }) => cutAt === null || sequence < cutAt.sequence);
  const sendOne = async ({ sequence, deliveryId, attempts }: DeliveryRow) => {
    const event = texts.get(sequence);
    if (!event)
      return { gone: false, outcome: { deliveryId, status: 'hidden', attempt: null, waitSeconds: 0 } as const };
    const { attempt, delivered, gone, retryAfter } = await send(deps.webhooks, row.url, secrets, event);
    if (!attempt)
      return {
        gone: false,
        outcome: { deliveryId, status: 'pending', attempt, waitSeconds: BUSY_HOST_SECONDS } as const,
      };
    const waitSeconds = delivered ? 0 : secondsUntilRetry(attempts.length + 1, retryAfter, platformTime());
    const status = delivered ? 'delivered' : waitSeconds === null ? 'parked' : 'pending';
    return { gone, outcome: { deliveryId, status, attempt, waitSeconds: waitSeconds ?? 0 } as const };
  };
  const outcomes: Awaited<ReturnType<typeof sendOne>>[] = [];
  const readAt = performance.now();
  while (outcomes.length < looked.length && performance.now() - readAt < FRESH_MS)
    outcomes.push(...(await Promise.all(looked.slice(outcomes.length, outcomes.length + BATCH).map(sendOne))));
  await database.shared('events', tenantId, (tx) =>
    conclude(
      deps,
      tx,
      tenantId,
      row,
      outcomes.map(({ outcome }) => outcome),
      outcomes.some(({ gone }) => gone),
    ),
  );
  for (const { outcome } of outcomes) deps.numbers.deliveries[outcome.status]++;
  return outcomes.length === 0 ? 0 : due.length;
}

/** Notes the outcomes of a batch, and suspends a subscription that has no future. */
async function conclude(
  deps: EventsDeps,
  tx: Tx,
  tenantId: string,
  row: SubscriptionRow,
  outcomes: readonly Outcome[],
  gone: boolean,
): Promise<void> {
  await Promise.all(outcomes.map((outcome) => tx.query(outcomeStatement(tenantId, outcome))));
  const tried = outcomes.filter(({ attempt }) => attempt !== null);
  if (tried.length === 0) return;
  const succeeded = tried.some(({ status }) => status === 'delivered');
  const after = await tx.first<SubscriptionRow>(
    noteOutcomesStatement(tenantId, row.subscriptionId, { succeeded, failed: tried.length }),
  );
  if (gone) await suspend(deps, tx, tenantId, row, 'gone');
  else if (after && isHopeless(after.failingSince, platformTime())) await suspend(deps, tx, tenantId, row, 'failing');
}

/**
 * Unless it was deleted or changed meanwhile. Its user is notified, unless they are inactive: nobody hears of anything who may
 * not use the platform.
 */
async function suspend(
  { notify }: EventsDeps,
  tx: Tx,
  tenantId: string,
  row: SubscriptionRow,
  reason: SuspensionReason,
): Promise<void> {
  const { subscriptionId, name, userId } = row;
  const now = await tx.first<SubscriptionRow>(subscriptionStatement(tenantId, subscriptionId, null, 'FOR UPDATE'));
  if (now?.state !== 'active' || now.url !== row.url) return;
  await tx.query(updateStatement(tenantId, subscriptionId, { state: 'suspended', reason }));
  tx.actAs(tenantRole(tenantId));
  const sql = new Sql();
  const data = sql.bind(JSON.stringify({ subscriptionId, name, reason, userId }), 'jsonb');
  const platform = platformCaller('job', requestId());
  const caller = new CallerSql(sql.for(platform));
  await tx.query(sql.statement(outboxSql(tx.schema, caller, { type: 'events.subscription.suspended', data })));
  if (reason !== 'userInactive')
    await notify(
      tx,
      { tenantId, ...platform },
      {
        type: 'webhookSuspended',
        severity: 'warning',
        recipientIds: [userId],
        data: {},
        action: { kind: 'subscription', id: subscriptionId },
      },
    );
  tx.actAs(serviceRole('events', tenantId));
}

const askerOf = (tenantId: string, { userId, clientId }: SubscriptionRow): Asker => ({
  requestId: requestId(),
  tenantId,
  userId,
  clientId,
  deadline: platformTime() + ASK_MS,
});

/** null: the user is not active any more, or has lost the permission to use the API. */
async function asUser<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    const refused = error instanceof PlatformError && (error.status === 401 || error.status === 403);
    if (refused && error.code !== 'TENANT_SUSPENDED') return null;
    throw error;
  }
}
