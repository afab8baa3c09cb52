/** Creates, changes and deletes events. Source: docs/reference/calendar.md. */
import { isDeepStrictEqual } from 'node:util';
import type { CalendarEvent, EventChange } from '../../../contracts/calendar.ts';
import { addressOf, type Handler } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { OperationCall, OperationReply } from '../../../lib/operation.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import { mutate } from '../../../mixins/mutation/mutate.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import { etagOf, requireVersion } from '../../../mixins/mutation/version.ts';
import type { CalendarDeps } from '../deps.ts';
import { bounded, countBefore, moved, type Recurrence, remaining, truncated } from '../recurrence/rule.ts';
import { localOf, wallOf } from '../recurrence/times.ts';
import { eventNotFound, nameIn, peopleOf, requireRecord, type SeenEvent, takesPart, visibleEvent } from './access.ts';
import {
  asItself,
  type Content,
  contentOf,
  type EventRow,
  hasTime,
  type Instance,
  instanceAt,
  isCanceled,
  NO_ANSWER,
  type Override,
  present,
  spanOf,
  type Times,
  timesAt,
} from './event.ts';
import {
  calendarsOfSql,
  countSql,
  deleteEventSql,
  deleteOverridesSql,
  enterSql,
  eventSql,
  overridesSql,
  storeEventSql,
  storeOverrideSql,
} from './events.sql.ts';
import {
  anchorOf,
  checkTitle,
  contentIn,
  NEW_CONTENT,
  Problems,
  readAttendees,
  readLines,
  readTimes,
} from './input.ts';
import { Invitations, organizerOf } from './invitations.ts';
import { inTurns, meetZones } from './turns.ts';

/** Runs a mutation of calendars, as the role of the service. */
const change = (
  { database }: CalendarDeps,
  request: RequestContext,
  call: OperationCall,
  work: (unit: Unit) => Promise<OperationReply>,
): Promise<OperationReply> => mutate(database, request, call, { role: { service: 'calendar' }, work });

/** To one who takes part. `readable`: the record that they were seen to be able to read. */
const shown = (event: EventRow, instance: Instance, readable: string | null): OperationReply => ({
  headers: { ETag: etagOf(event) },
  body: present(event, instance, { isPart: true, readsRecord: event.recordId === readable }),
});

const readableRecord = ({ event, sight }: SeenEvent): string | null => (sight.readsRecord ? event.recordId : null);

export const createEvent: Handler<'calendar.events.create', CalendarDeps> = async (deps, request, call) => {
  const { userId } = request;
  const { body } = call;
  const problems = new Problems();
  const times = readTimes(body, problems);
  const recurrence = body.recurrence && times ? await readLines(body.recurrence, times, problems) : null;
  const attendees = readAttendees(body.attendees ?? [], userId, [], problems);
  checkTitle(body, problems);
  await checkPeople(deps, request, body, [], problems);
  problems.throwIfAny();
  if (!times) throw new Error('Assertion failed: wrong times are a problem.');
  const { record = null } = body;
  if (record) await requireRecord(deps, request, record);
  const organizer = await organizerOf(deps, request, attendees);
  return change(deps, request, call, async (unit) => {
    const now = formatTimestamp(platformTime());
    const event = await store(unit, {
      ...times,
      eventId: uuidv7(),
      calendarId: userId,
      version: 1,
      sequence: 0,
      recurrence,
      content: { ...NEW_CONTENT, title: body.title, ...contentIn(body) },
      attendees,
      ...recordColumns(record),
      createdAt: now,
      updatedAt: now,
    });
    await count(unit, event, 1);
    const { eventId } = event;
    const invitations = new Invitations(unit, organizer);
    await invitations.changed(null, event, [], false);
    invitations.users.changed(null, event, [], false);
    note(unit, 'created', [event], { properties: Object.keys(body), ...mailsOf(invitations) });
    await invitations.users.ask(deps, unit);
    const reply = shown(event, asItself(event), event.recordId);
    return {
      ...reply,
      status: 201,
      headers: { ...reply.headers, Location: addressOf('calendar.events.get', { eventId }) },
    };
  });
};

const recordColumns = (record: CalendarEvent['record']): Pick<EventRow, 'objectApiName' | 'recordId'> => ({
  objectApiName: record?.objectApiName ?? null,
  recordId: record?.id.toLowerCase() ?? null,
});

/** Users who are invited anew are active ones of the tenant. */
async function checkPeople(
  deps: CalendarDeps,
  { tenantId, userId }: RequestContext,
  { attendees = [] }: EventChange,
  known: readonly string[],
  problems: Problems,
): Promise<void> {
  const users = attendees.flatMap((one, i) => {
    const id = one.userId?.toLowerCase();
    return id === undefined || known.includes(id) ? [] : [{ id, i }];
  });
  if (users.length === 0) return;
  const principals = users.map(({ id }) => ({ principalType: 'user' as const, principalId: id }));
  for (const place of await deps.unknownPrincipals({ tenantId, userId, principals }))
    problems.add(`/attendees/${users[place]?.i}/userId`, 'There is no such active user.');
}

/** Stores the event, and enters it in the calendars of those who take part. `overrides`: all that it has. */
async function store(
  { tx, request: { tenantId } }: Unit,
  event: EventRow,
  overrides: readonly Override[] = [],
): Promise<EventRow> {
  const span = spanOf(event, overrides);
  const stored = await tx.one<EventRow>(storeEventSql(tenantId, event, span));
  const { eventId } = stored;
  const calendars = new Set(peopleOf(stored));
  const before = await tx.all<{ calendarId: string }>(calendarsOfSql(tenantId, eventId));
  const removed = before.map((one) => one.calendarId).filter((id) => !calendars.has(id));
  await tx.query(enterSql(tenantId, { eventId, calendars: [...calendars], removed, span }));
  return stored;
}

async function count({ tx, request: { tenantId } }: Unit, { calendarId }: EventRow, by: number): Promise<void> {
  const { ofUser, ofTenant } = await tx.one<{ ofUser: number; ofTenant: number }>(countSql(tenantId, calendarId, by));
  if (by < 0) return;
  const { calendar_events_of_user_max: user, calendar_events_of_tenant_max: tenant } = LIMITS;
  if (ofUser > user) throw tooMany('A user organizes', user);
  // The statement does not see its own change.
  if (ofTenant + by > tenant) throw tooMany('A tenant has', tenant);
}

const tooMany = (who: string, max: number): PlatformError =>
  new PlatformError('TOO_MANY_ITEMS', `${who} ${max} events at most; delete some first.`, { details: { max } });

/**
 * Audit entry and event of a change. Neither has what the event says, which is for those who see it. `states`: the event
 * before and after; users who take part in either are told.
 */
function note(
  unit: Unit,
  kind: 'created' | 'updated' | 'deleted',
  [event, ...others]: readonly [EventRow, ...EventRow[]],
  changes: object,
): void {
  const { eventId, calendarId: userId } = event;
  const people = new Set([event, ...others].flatMap(peopleOf));
  unit.audit({
    recordId: eventId,
    kind: kind === 'created' ? 'create' : kind === 'updated' ? 'update' : 'delete',
    changes,
  });
  unit.emit({ type: `calendar.event.${kind}`, recordId: eventId, data: { eventId, userId, people: [...people] } });
}

const mailsOf = ({ mails }: Invitations): object => (Object.keys(mails).length > 0 ? { mails } : {});

type Scope = 'this' | 'following' | 'series';

interface Target {
  readonly event: EventRow;
  /** Of the instance that is named; null: the event itself. */
  readonly original: string | null;
  readonly scope: Scope;
}

/** The event under lock, and what of it the call is about. Throws for callers who do not organize it. */
async function target(unit: Unit, id: string, ifMatch: string, scope: Scope | undefined): Promise<Target> {
  const { tx, request } = unit;
  const { eventId, original } = nameIn(id);
  const event = await tx.first<EventRow>(eventSql(request.tenantId, eventId, true));
  if (!event || event.calendarId !== request.userId) throw eventNotFound();
  requireVersion(event, ifMatch, 'event');
  if (original === null) {
    if (event.recurrence && scope !== undefined && scope !== 'series') throw scopeInvalid();
    return { event, original, scope: 'series' };
  }
  if (!hasTime(event, wallOf(original))) throw eventNotFound();
  const isFirst = original === event.startLocal;
  return { event, original, scope: scope === undefined ? 'this' : scope === 'following' && isFirst ? 'series' : scope };
}

const scopeInvalid = (): PlatformError => {
  const message = '`this` and `following` take the id of an instance of the series.';
  return new PlatformError('PARAMETER_INVALID', message, {
    errors: [violation('query:scope', 'PARAMETER_INVALID', message)],
  });
};

async function requireOrganizer(deps: CalendarDeps, request: RequestContext, id: string): Promise<SeenEvent> {
  const seen = await visibleEvent(deps, request, id);
  if (seen.event.calendarId !== request.userId)
    throw new PlatformError('RECORD_ACCESS_DENIED', 'The organizer alone changes an event.');
  return seen;
}

export const updateEvent: Handler<'calendar.events.update', CalendarDeps> = async (deps, request, call) => {
  const { body, path, query, headers } = call;
  const seen = await requireOrganizer(deps, request, path.eventId);
  const { attendees } = seen.event;
  const problems = new Problems();
  const times = readTimes(body, problems);
  checkTitle(body, problems);
  await checkPeople(deps, request, body, peopleOf(seen.event), problems);
  problems.throwIfAny();
  if (body.record) await requireRecord(deps, request, body.record);
  const organizer = await organizerOf(deps, request, [...attendees, ...(body.attendees ?? [])]);
  return change(deps, request, call, async (unit) => {
    const found = await target(unit, path.eventId, headers.ifMatch, query.scope);
    const invitations = new Invitations(unit, organizer);
    const changed = { body, times, invitations };
    const { event, instance } =
      found.scope === 'this' && found.original !== null
        ? await changeInstance(unit, found.event, found.original, changed)
        : found.scope === 'following' && found.original !== null
          ? await changeFollowing(unit, found.event, found.original, changed)
          : await changeAll(unit, found, changed);
    note(unit, 'updated', [found.event, event], {
      scope: found.scope,
      originalStart: found.original,
      properties: Object.keys(body),
      ...mailsOf(invitations),
    });
    await invitations.users.ask(deps, unit);
    return shown(event, instance, body.record ? event.recordId : readableRecord(seen));
  });
};

interface Changed {
  readonly body: EventChange;
  readonly times: Times | null;
  readonly invitations: Invitations;
}

const TOLD_OUTSIDE = ['title', 'description', 'location', 'status'] as const;

/** People outside are told of the change. */
const mattersOutside = (before: Content, after: Content): boolean =>
  TOLD_OUTSIDE.some((name) => before[name] !== after[name]);

interface Outcome {
  readonly event: EventRow;
  readonly instance: Instance;
}

async function allOverrides({ tx, request: { tenantId } }: Unit, { eventId }: EventRow): Promise<readonly Override[]> {
  const overrides = await tx.all<Override>(overridesSql(tenantId, eventId));
  await meetZones(overrides);
  return overrides;
}

async function changeInstance(unit: Unit, event: EventRow, original: string, changed: Changed): Promise<Outcome> {
  const { body, times, invitations } = changed;
  const problems = new Problems();
  for (const name of ['recurrence', 'attendees', 'record'] as const)
    if (body[name] !== undefined)
      problems.add(`/${name}`, 'Belongs to the series; it takes `scope=series` or `scope=following`.');
  if (times && (times.startTimezone === null) !== (event.startTimezone === null))
    problems.add('/start', 'An instance is of whole days when its series is.');
  problems.throwIfAny();
  const overrides = await allOverrides(unit, event);
  const before = overrides.find((one) => one.originalStart === original);
  const isMoved = times !== null && !isSameTime(times, instanceAt(event, original, before ?? null)?.times ?? event);
  const override: Override = {
    originalStart: original,
    patch: { ...before?.patch, ...contentIn(body), ...times },
    responses: isMoved ? askedAnew(event) : (before?.responses ?? {}),
  };
  requireRoom(overrides, override, isChanged, 'that differ from it');
  const wasCanceled = isCanceled(event, before);
  const statusChanges = isCanceled(event, override) !== wasCanceled;
  const outcome = await storeOverride(unit, event, overrides, override, isMoved || statusChanges ? 1 : 0);
  if (isMoved || mattersOutside(contentOf(event, before), contentOf(event, override)))
    await invitations.instanceChanged(outcome.event, override, wasCanceled);
  invitations.users.instanceChanged(outcome.event, override, wasCanceled, isMoved);
  return outcome;
}

/** The answers to an instance that was moved by itself: those to its series are about another time. */
const askedAnew = ({ attendees }: EventRow): Override['responses'] =>
  Object.fromEntries(attendees.flatMap(({ userId }) => (userId === null ? [] : [[userId, NO_ANSWER]])));

const isSameTime = (one: Times, other: Times): boolean =>
  one.startLocal === other.startLocal &&
  one.startTimezone === other.startTimezone &&
  one.endLocal === other.endLocal &&
  one.endTimezone === other.endTimezone;

const isChanged = ({ patch }: Override): boolean => Object.keys(patch).length > 0;

const isAnswered = ({ responses }: Override): boolean =>
  Object.values(responses).some(({ response }) => response !== NO_ANSWER.response);

/** Bounds the instances that have something: what the organizer changes and what attendees answer apart. */
function requireRoom(
  overrides: readonly Override[],
  { originalStart }: Override,
  has: (override: Override) => boolean,
  what: string,
): void {
  const max = LIMITS.calendar_exceptions_max;
  if (overrides.filter((one) => one.originalStart !== originalStart && has(one)).length >= max)
    throw new PlatformError('TOO_MANY_ITEMS', `A series has ${max} instances at most ${what}.`, { details: { max } });
}

/** Stores how an instance differs from its series. */
async function storeOverride(
  unit: Unit,
  event: EventRow,
  overrides: readonly Override[],
  override: Override,
  sequence: number,
): Promise<Outcome> {
  const others = overrides.filter(({ originalStart }) => originalStart !== override.originalStart);
  const { tenantId } = unit.request;
  await unit.tx.query(storeOverrideSql(tenantId, event.eventId, override));
  const next = { ...event, version: event.version + 1, sequence: event.sequence + sequence };
  const stored = await store(unit, next, [...others, override]);
  return { event: stored, instance: instanceAt(stored, override.originalStart, override) ?? asItself(stored) };
}

/** Changes an event or a series. With the id of an instance, its new times move the whole series as far. */
async function changeAll(unit: Unit, { event, original }: Target, changed: Changed): Promise<Outcome> {
  const { times: given } = changed;
  const times =
    given && original !== null ? timesAt(given, wallOf(event.startLocal) + shiftOf(original, given)) : given;
  const overrides = await allOverrides(unit, event);
  const next = await changedEvent(event, { ...changed, times });
  const kept = await keptOverrides(event, next, overrides);
  const { tenantId } = unit.request;
  if (!isDeepStrictEqual(kept, overrides)) {
    const originals = overrides.map(({ originalStart }) => originalStart);
    await unit.tx.query(deleteOverridesSql(tenantId, event.eventId, originals));
    for (const override of kept) await unit.tx.query(storeOverrideSql(tenantId, event.eventId, override));
  }
  const stored = await store(unit, next, kept);
  const isMoved = movesSeries(event, next);
  await changed.invitations.changed(event, stored, kept, isMoved || mattersOutside(event.content, next.content));
  changed.invitations.users.changed(event, stored, kept, isMoved);
  return { event: stored, instance: asItself(stored) };
}

const shiftOf = (original: string, { startLocal }: Times): number => wallOf(startLocal) - wallOf(original);

/**
 * Those that still stand on a time of the changed series and differ from it, by their time in it. One that was moved by itself
 * stays where it is. Answers stay of users who are invited, unless all are asked anew.
 */
async function keptOverrides(
  before: EventRow,
  event: EventRow,
  overrides: readonly Override[],
): Promise<readonly Override[]> {
  if ((event.startTimezone === null) !== (before.startTimezone === null)) return [];
  const shift = shiftOf(before.startLocal, event);
  const hasSameTimes = shift === 0 && isDeepStrictEqual(event.recurrence, before.recurrence);
  const asked = new Set(movesSeries(before, event) ? [] : peopleOf(event));
  const kept: Override[] = [];
  for await (const { originalStart, patch, responses } of inTurns(overrides)) {
    const answers = Object.entries(responses).filter(([userId]) => asked.has(userId));
    const wall = wallOf(originalStart) + shift;
    const override = { originalStart: localOf(wall), patch, responses: Object.fromEntries(answers) };
    if ((isChanged(override) || answers.length > 0) && (hasSameTimes || hasTime(event, wall))) kept.push(override);
  }
  return kept;
}

/** The event with the change. Answers are asked for anew when it is moved. */
async function changedEvent(event: EventRow, { body, times }: Pick<Changed, 'body' | 'times'>): Promise<EventRow> {
  const problems = new Problems();
  const at = times ?? event;
  const recurrence = await recurrenceOf(event, at, body, problems);
  const attendees = body.attendees
    ? readAttendees(body.attendees, event.calendarId, event.attendees, problems)
    : event.attendees;
  problems.throwIfAny();
  const { startLocal, startTimezone, endLocal, endTimezone } = at;
  const next = {
    ...event,
    ...{ startLocal, startTimezone, endLocal, endTimezone },
    version: event.version + 1,
    recurrence,
    content: { ...event.content, ...contentIn(body) },
    ...(body.record === undefined ? {} : recordColumns(body.record)),
  };
  const isMoved = movesSeries(event, next);
  return {
    ...next,
    sequence: event.sequence + (isMoved || isCanceled(event) !== isCanceled(next) ? 1 : 0),
    attendees: isMoved ? attendees.map((one) => ({ ...one, ...NO_ANSWER })) : attendees,
  };
}

const movesSeries = (before: EventRow, event: EventRow): boolean =>
  !isSameTime(event, before) || !isDeepStrictEqual(event.recurrence, before.recurrence);

/** The recurrence after a change: as it is given, or as it was, moved with the start. */
async function recurrenceOf(
  event: EventRow,
  at: Times,
  body: EventChange,
  problems: Problems,
): Promise<Recurrence | null> {
  if (body.recurrence !== undefined) return body.recurrence && readLines(body.recurrence, at, problems);
  if (!event.recurrence) return null;
  const by = wallOf(at.startLocal) - wallOf(event.startLocal);
  if (by === 0 && (at.startTimezone === null) === (event.startTimezone === null)) return event.recurrence;
  return boundedAgain(moved(event.recurrence, by), at, problems);
}

/** The recurrence with a new start, of which its rule must be true. */
async function boundedAgain(recurrence: Recurrence, at: Times, problems: Problems): Promise<Recurrence> {
  const read = await bounded(recurrence, anchorOf(at));
  if ('problem' in read) {
    problems.add(
      '/recurrence',
      `${read.problem} Send \`recurrence\` with a rule for the new start.`,
      'RECURRENCE_INVALID',
    );
    return recurrence;
  }
  return { ...read.value, added: recurrence.added, left: recurrence.left };
}

/** Ends the series before an instance, and begins another one there. */
async function changeFollowing(unit: Unit, event: EventRow, original: string, changed: Changed): Promise<Outcome> {
  const { tenantId } = unit.request;
  const wall = wallOf(original);
  const overrides = await allOverrides(unit, event);
  const begun: EventRow = { ...event, ...timesAt(event, wall), eventId: uuidv7(), version: 0 };
  const problems = new Problems();
  const rest = await restOf(event, wall);
  const recurrence = rest && !changed.body.recurrence ? await boundedAgain(rest, begun, problems) : rest;
  problems.throwIfAny();
  const following = { ...begun, recurrence };
  const next = await changedEvent(following, changed);
  const kept = await keptOverrides(
    following,
    next,
    overrides.filter((one) => one.originalStart >= original),
  );
  const ended = await endBefore(unit, event, wall, overrides);
  const stored = await store(unit, next, kept);
  for (const override of kept) await unit.tx.query(storeOverrideSql(tenantId, stored.eventId, override));
  await count(unit, stored, 1);
  await changed.invitations.changed(event, ended.event, ended.overrides, true);
  await changed.invitations.changed(null, stored, kept, false);
  // For them it is one series, in calendars that are here.
  changed.invitations.users.changed(following, stored, kept, movesSeries(following, next));
  note(unit, 'created', [stored], { from: event.eventId, originalStart: original });
  return { event: stored, instance: asItself(stored) };
}

/** The recurrence from an instance on. */
async function restOf({ startLocal, recurrence }: EventRow, wall: number): Promise<Recurrence | null> {
  if (!recurrence) return null;
  const before = recurrence.count === null ? 0 : await countBefore(recurrence, wallOf(startLocal), wall);
  return remaining(recurrence, wall, before);
}

/** Lets a series end before one of its instances. */
async function endBefore(
  unit: Unit,
  event: EventRow,
  wall: number,
  overrides: readonly Override[],
): Promise<{ readonly event: EventRow; readonly overrides: readonly Override[] }> {
  const original = localOf(wall);
  const gone = overrides.flatMap(({ originalStart }) => (originalStart >= original ? [originalStart] : []));
  if (gone.length > 0) await unit.tx.query(deleteOverridesSql(unit.request.tenantId, event.eventId, gone));
  const ended = {
    ...event,
    version: event.version + 1,
    sequence: event.sequence + 1,
    recurrence: event.recurrence && truncated(event.recurrence, wall),
  };
  const kept = overrides.filter(({ originalStart }) => originalStart < original);
  return { event: await store(unit, ended, kept), overrides: kept };
}

export const deleteEvent: Handler<'calendar.events.delete', CalendarDeps> = async (deps, request, call) => {
  const { path, query, headers } = call;
  const {
    event: { attendees },
  } = await requireOrganizer(deps, request, path.eventId);
  const organizer = await organizerOf(deps, request, attendees);
  return change(deps, request, call, async (unit) => {
    const { event, original, scope } = await target(unit, path.eventId, headers.ifMatch, query.scope);
    const invitations = new Invitations(unit, organizer);
    if (original === null || scope === 'series') await removeEvent(unit, event, invitations);
    else if (scope === 'following') {
      const ended = await endBefore(unit, event, wallOf(original), await allOverrides(unit, event));
      await invitations.changed(event, ended.event, ended.overrides, true);
      const rest = { ...event, ...timesAt(event, wallOf(original)), recurrence: await restOf(event, wallOf(original)) };
      invitations.users.removed(rest, [], null);
    } else await leaveOut(unit, event, original, invitations);
    note(unit, original === null || scope === 'series' ? 'deleted' : 'updated', [event], {
      scope,
      originalStart: original,
      ...mailsOf(invitations),
    });
    await invitations.users.ask(deps, unit);
    return { body: { eventId: path.eventId, deleted: true, deletedAt: formatTimestamp(platformTime()) } };
  });
};

async function removeEvent(unit: Unit, event: EventRow, invitations: Invitations): Promise<void> {
  const { tx, request } = unit;
  const { tenantId } = request;
  const { eventId } = event;
  const before = await tx.all<{ calendarId: string }>(calendarsOfSql(tenantId, eventId));
  const overrides = await allOverrides(unit, event);
  const span = spanOf({ ...event, recurrence: null }, []);
  await tx.query(
    enterSql(tenantId, { eventId, calendars: [], removed: before.map(({ calendarId }) => calendarId), span }),
  );
  await tx.query(deleteEventSql(tenantId, eventId));
  await count(unit, event, -1);
  await invitations.removed({ ...event, sequence: event.sequence + 1 }, overrides, null);
  invitations.users.removed(event, overrides, null);
}

/** Leaves an instance out of its series, whatever was different in it. */
async function leaveOut(unit: Unit, event: EventRow, original: string, invitations: Invitations): Promise<void> {
  const { recurrence } = event;
  if (!recurrence) return;
  const left = [...recurrence.left, wallOf(original)].sort((a, b) => a - b);
  if (left.length > LIMITS.calendar_exceptions_max)
    throw new PlatformError('TOO_MANY_ITEMS', `A series has ${LIMITS.calendar_exceptions_max} EXDATE at most.`, {
      details: { max: LIMITS.calendar_exceptions_max },
    });
  const overrides = await allOverrides(unit, event);
  await unit.tx.query(deleteOverridesSql(unit.request.tenantId, event.eventId, [original]));
  const next = {
    ...event,
    version: event.version + 1,
    sequence: event.sequence + 1,
    recurrence: { ...recurrence, left },
  };
  const others = overrides.filter(({ originalStart }) => originalStart !== original);
  const stored = await store(unit, next, others);
  const instance = overrides.find((one) => one.originalStart === original);
  const removed = instance ?? { originalStart: original, patch: {}, responses: {} };
  await invitations.removed(stored, others, removed);
  invitations.users.removed(stored, others, removed);
}

export const respondToEvent: Handler<'calendar.events.respond', CalendarDeps> = async (deps, request, call) => {
  const { userId, tenantId } = request;
  const { path, body } = call;
  const seen = await visibleEvent(deps, request, path.eventId);
  if (seen.event.calendarId === userId || !takesPart(seen.event, userId)) throw notInvited();
  const { eventId, original } = nameIn(path.eventId);
  return change(deps, request, call, async (unit) => {
    const event = await unit.tx.first<EventRow>(eventSql(tenantId, eventId, true));
    if (!event || !takesPart(event, userId)) throw eventNotFound();
    const { response, comment = null } = body;
    const overrides = await allOverrides(unit, event);
    const answer = async (): Promise<Outcome> => {
      if (original !== null) {
        if (!hasTime(event, wallOf(original))) throw eventNotFound();
        const before = overrides.find((one) => one.originalStart === original);
        const responses = { ...before?.responses, [userId]: { response, comment } };
        const override = { originalStart: original, patch: before?.patch ?? {}, responses };
        requireRoom(overrides, override, isAnswered, 'that are answered by themselves');
        return storeOverride(unit, event, overrides, override, 0);
      }
      const attendees = event.attendees.map((one) => (one.userId === userId ? { ...one, response, comment } : one));
      const unanswered = overrides.filter(({ responses }) => responses[userId]?.response === 'needsAction');
      for (const { responses, ...override } of unanswered) {
        const { [userId]: _, ...others } = responses;
        await unit.tx.query(storeOverrideSql(tenantId, eventId, { ...override, responses: others }));
      }
      const stored = await store(unit, { ...event, version: event.version + 1, attendees }, overrides);
      return { event: stored, instance: asItself(stored) };
    };
    const outcome = await answer();
    note(unit, 'updated', [event], { originalStart: original, response: { userId, response } });
    return { ...shown(outcome.event, outcome.instance, readableRecord(seen)), status: 201 };
  });
};

const notInvited = (): PlatformError =>
  new PlatformError('RECORD_ACCESS_DENIED', 'Users who attend answer for themselves; you were not invited.');
