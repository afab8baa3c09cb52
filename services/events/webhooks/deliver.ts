/**
 * Delivers the events of a subscription to its receiver: a job of the queue `events.deliver`, of which there is one at a time
 * for each subscription. A round reads what follows in the log and what is due again, sends it, and notes in one transaction how that has
 * ended and how far it came: what a process that dies was sending is sent again. An event is read as the user of the
 * subscription may know of it then. Source: docs/reference/webhooks.md.
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
  type Addressed,
  type DeliveryRow,
  dueStatement,
  endsConnection,
  eventsStatement,
  type FollowingRow,
  followingStatement,
  noteRoundStatement,
  type Outcome,
  type Pending,
  pendingStatement,
  takes,
  waitingSubjectsStatement,
} from './delivery.sql.ts';
import type { Delivering, Turn } from './queue.ts';
import { isHopeless, secondsUntilRetry } from './retries.ts';
import { openSecrets } from './secrets.ts';
import { send } from './send.ts';
import { type SubscriptionRow, subscriptionStatement, updateStatement } from './subscription.sql.ts';

/** Read at a time, and sent at a time. */
const ROUND = 100;
const BATCH = 20;
/** What was read so long ago is read again before it is sent: its user may know of something else then. */
const FRESH_MS = 1_000;
/** A job ends after so long, so that those of other subscriptions get their turn; where there is room for them, it need not. */
const TURN_MS = 60_000;
const LONG_TURN_MS = 3_600_000;
/** A job waits for what is due so soon; the next round of all finds what is due later. */
const LINGER_SECONDS = 10;
/** So long after its last event, where there is room for others, a job waits for further ones: to begin one costs more. */
const BUSY_MS = 20_000;
const ROOM_LOOK_MS = 500;
/** A delivery for whose host there was no place is tried again. */
const BUSY_HOST_SECONDS = 1;
const ASK_MS = 30_000;

export async function deliver(
  deps: EventsDeps,
  { tenantId, subscriptionId }: Delivering,
  turn: Turn,
  signal: AbortSignal,
): Promise<void> {
  const began = performance.now();
  const hasTime = (ms: number): boolean => performance.now() < began + ms;
  let busyUntil = 0;
  while (!signal.aborted && (hasTime(TURN_MS) || (hasTime(LONG_TURN_MS) && deps.deliveries.hasRoom(tenantId)))) {
    if (await deps.isSuspended(tenantId)) return;
    turn.look();
    const round = await readRound(deps, tenantId, subscriptionId);
    if (!round) return;
    const stays = performance.now() < busyUntil;
    const outcomes = await sendRound(deps, tenantId, round);
    if (outcomes === null) return;
    const { upTo } = round;
    // A job that stays looks at the same part of the log once more rather than note that there was nothing in it.
    if (outcomes.length > 0 || (upTo !== round.row.position && (round.isBehind || !stays)))
      await noteRound(deps, tenantId, round, outcomes);
    if (outcomes.length > 0) busyUntil = performance.now() + BUSY_MS;
    if (round.isBehind) continue;
    const waits = outcomes.flatMap(({ status, waitSeconds }) => (status === 'pending' ? [waitSeconds] : []));
    const dueSeconds = Math.min(round.dueInSeconds ?? Infinity, ...waits);
    const dueMs = dueSeconds > LINGER_SECONDS ? Infinity : dueSeconds * 1_000;
    const restUntil = performance.now() + dueMs;
    const goesOn = (): boolean =>
      restUntil < Infinity || (performance.now() < busyUntil && deps.deliveries.hasRoom(tenantId));
    while (!turn.hasNews && !signal.aborted && performance.now() < restUntil && goesOn())
      await turn.rest(Math.min(restUntil - performance.now(), ROOM_LOOK_MS), signal);
    if (!turn.hasNews && restUntil === Infinity) return;
  }
  // A job that is ended with its process goes on in another one; what is left after the longest turn has a turn of its own.
  signal.throwIfAborted();
  turn.wake();
}

interface Round {
  readonly row: SubscriptionRow;
  /** Deliveries that are due again. */
  readonly due: readonly DeliveryRow[];
  /** Events behind the position. */
  readonly fresh: readonly Addressed[];
  /** Of both, by number. */
  readonly events: readonly LogEvent[];
  /** Those about the same wait for an earlier delivery. */
  readonly waiting: ReadonlySet<string>;
  /** How far the round comes, and whether more follows there. */
  upTo: number;
  isBehind: boolean;
  readonly dueInSeconds: number | null;
}

/** `gone`: the receiver wants nothing more. */
interface Sent extends Outcome {
  readonly gone: boolean;
}

/** What is to be sent now. null: the subscription is not active, or is suspended because its user has ended the connection that made it. */
function readRound(deps: EventsDeps, tenantId: string, subscriptionId: string): Promise<Round | null> {
  return deps.database.shared('events', tenantId, async (tx) => {
    const [row, { pending, dueInSeconds }, due] = await Promise.all([
      tx.first<SubscriptionRow>(subscriptionStatement(tenantId, subscriptionId, null)),
      tx.one<Pending>(pendingStatement(tenantId, subscriptionId)),
      tx.all<DeliveryRow>(dueStatement(tenantId, subscriptionId, ROUND)),
    ]);
    if (row?.state !== 'active') return null;
    const room = Math.min(LIMITS.webhook_pending_max - pending, ROUND - due.length);
    tx.gather();
    tx.actAs(tenantRole(tenantId));
    const [again, following] = await Promise.all([
      due.length > 0
        ? tx.all<LogEvent>(
            eventsStatement(
              tx.schema,
              due.map(({ sequence }) => sequence),
            ),
          )
        : [],
      tx.all<FollowingRow>(followingStatement(tx.schema, row, Math.max(room, 0))),
    ]);
    const [place] = following;
    if (!place) throw new Error('The log has no head.');
    const found = following.filter((one): one is FollowingRow & LogEvent => one.sequence !== null);
    tx.actAs(serviceRole('events', tenantId));
    if (found.some((event) => endsConnection(row, event))) {
      await suspend(deps, tx, tenantId, row, 'connectionEnded');
      return null;
    }
    const after = Math.min(Math.max(row.position, place.oldest), place.last);
    const looked = room <= 0 ? after : Math.min(place.last, after + LIMITS.events_scan_max);
    const upTo = room > 0 && found.length === room ? (found.at(-1)?.sequence ?? looked) : looked;
    const taken = found.filter((event) => takes(row, event));
    const fresh = taken.map(addressed);
    const inOrder = row.ordering === 'perRecord' && pending > 0 && fresh.length > 0;
    const waiting = inOrder
      ? await tx.all<{ subject: string }>(
          waitingSubjectsStatement(
            tenantId,
            subscriptionId,
            fresh.map(({ subject }) => subject),
          ),
        )
      : [];
    return {
      row,
      due,
      fresh,
      events: [...again, ...taken].sort((a, b) => a.sequence - b.sequence),
      waiting: new Set(waiting.map(({ subject }) => subject)),
      upTo,
      // Behind each one that was due, others about the same may be due now.
      isBehind: due.length > 0 || (room > 0 && upTo < place.last),
      dueInSeconds,
    };
  });
}

/** A test was given the id of its delivery when it was asked for. */
export function addressed(event: LogEvent): Addressed {
  const { deliveryId } = event.data;
  return {
    deliveryId: typeof deliveryId === 'string' ? deliveryId : uuidv7(),
    sequence: event.sequence,
    eventType: event.type,
    subject: subjectOf(event),
  };
}

/**
 * Sends what the round has, and cuts the round where that took too long or would be too much. null: the subscription is suspended,
 * because its user or client is not to be used any more.
 */
async function sendRound(deps: EventsDeps, tenantId: string, round: Round): Promise<readonly Sent[] | null> {
  const { row, due, fresh, events } = round;
  if (due.length === 0 && fresh.length === 0) return [];
  const visible = await asUser(() => visibleEvents(deps, askerOf(tenantId, row), events, row.payload === 'full'));
  if (visible === null || !visible.clientUsable) {
    const reason = visible === null ? 'userInactive' : 'clientDisabled';
    await deps.database.shared('events', tenantId, (tx) => suspend(deps, tx, tenantId, row, reason));
    return null;
  }
  const texts = new Map(
    visible.events.map(({ event, text }) => [event.sequence, { id: eventId(tenantId, event), body: text }]),
  );
  const secrets = openSecrets(deps, tenantId, row);
  const sendOne = async (delivery: Addressed, tries: number): Promise<Sent> => {
    const event = texts.get(delivery.sequence);
    if (!event) return unsent(delivery, 'hidden');
    const { attempt, delivered, gone, retryAfter } = await send(deps.webhooks, row.url, secrets, event);
    if (!attempt) return unsent(delivery, 'pending', BUSY_HOST_SECONDS);
    const waitSeconds = delivered ? 0 : secondsUntilRetry(tries + 1, retryAfter, platformTime());
    const status = delivered ? 'delivered' : waitSeconds === null ? 'parked' : 'pending';
    return { ...delivery, status, attempt, waitSeconds: waitSeconds ?? 0, gone };
  };
  const waiting = new Set(round.waiting);
  const sendFresh = (delivery: Addressed): Promise<Sent> | Sent => {
    if (row.ordering === 'perRecord') {
      if (waiting.has(delivery.subject)) return unsent(delivery, 'pending');
      waiting.add(delivery.subject);
    }
    return sendOne(delivery, 0);
  };
  const cut = visible.cutAt?.sequence ?? Infinity;
  const work = [
    ...due.map((delivery) => ({ ...delivery, send: () => sendOne(delivery, delivery.tries) })),
    ...fresh.map((delivery) => ({ ...delivery, send: () => sendFresh(delivery) })),
  ].filter(({ sequence }) => sequence < cut);
  const outcomes: Sent[] = [];
  const readAt = performance.now();
  while (outcomes.length < work.length && performance.now() - readAt < FRESH_MS)
    outcomes.push(
      ...(await Promise.all(work.slice(outcomes.length, outcomes.length + BATCH).map((one) => one.send()))),
    );
  if (outcomes.length < due.length + fresh.length) round.isBehind = true;
  const left = fresh[Math.max(0, outcomes.length - due.filter(({ sequence }) => sequence < cut).length)];
  if (left) round.upTo = Math.min(round.upTo, left.sequence - 1);
  for (const { status } of outcomes) deps.numbers.deliveries[status]++;
  return outcomes;
}

const unsent = (delivery: Addressed, status: 'hidden' | 'pending', waitSeconds = 0): Sent => ({
  ...delivery,
  status,
  attempt: null,
  waitSeconds,
  gone: false,
});

/** Notes how far the round came and how its deliveries have ended, and suspends a subscription that has no future. */
function noteRound(
  deps: EventsDeps,
  tenantId: string,
  { row, due, upTo }: Round,
  outcomes: readonly Sent[],
): Promise<void> {
  const known = new Set(due.map(({ sequence }) => sequence));
  // Of an event that its user may not know of, nothing is kept.
  const kept = outcomes.filter(({ status, sequence }) => status !== 'hidden' || known.has(sequence));
  const tried = outcomes.filter(({ attempt }) => attempt !== null);
  const succeeded = tried.some(({ status }) => status === 'delivered');
  return deps.database.shared('events', tenantId, async (tx) => {
    const noted = { upTo, tried: tried.length, succeeded, outcomes: kept };
    const after = await tx.first<SubscriptionRow>(noteRoundStatement(tenantId, row, noted));
    if (!after) return;
    if (outcomes.some(({ gone }) => gone)) await suspend(deps, tx, tenantId, row, 'gone');
    else if (tried.length > 0 && isHopeless(after.failingSince, platformTime()))
      await suspend(deps, tx, tenantId, row, 'failing');
  });
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
        data: { webhook: name },
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
