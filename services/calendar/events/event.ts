/** An event as it is stored, the instances of a series, and what callers read of them. Pure. */
import type { CalendarEvent, Moment, Response } from '../../../contracts/calendar.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import { compactOf, type Recurrence, timesOf, writeRecurrence } from '../recurrence/rule.ts';
import { DAY_MS, instantOf, localOf, wallAt, wallOf } from '../recurrence/times.ts';

/** Start and end as local times; a time zone of null: whole days. */
export interface Times {
  readonly startLocal: string;
  readonly startTimezone: string | null;
  readonly endLocal: string;
  readonly endTimezone: string | null;
}

/** What an event says besides when and who. */
export interface Content {
  readonly title: string;
  readonly description: string | null;
  readonly location: string | null;
  readonly status: CalendarEvent['status'];
  readonly visibility: CalendarEvent['visibility'];
  readonly busy: boolean;
  readonly reminders: CalendarEvent['reminders'];
}

interface Answer {
  readonly response: Response;
  readonly comment: string | null;
}

export const NO_ANSWER: Answer = { response: 'needsAction', comment: null };

export interface Attendee extends Answer {
  readonly userId: string | null;
  readonly email: string | null;
  readonly optional: boolean;
  /** No invitation to this person outside was queued; absent: one was. */
  readonly untold?: true;
}

export interface EventRow extends Times {
  readonly eventId: string;
  readonly calendarId: string;
  readonly version: number;
  readonly sequence: number;
  readonly recurrence: Recurrence | null;
  readonly content: Content;
  readonly attendees: readonly Attendee[];
  readonly objectApiName: string | null;
  readonly recordId: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface Override {
  readonly originalStart: string;
  readonly patch: Partial<Content & Times>;
  /** By user, where they differ from those to the series. */
  readonly responses: Readonly<Record<string, Answer>>;
}

/** An event as it takes place once. */
export interface Instance {
  /** Start by the rule, as local time; null: an event that does not repeat, or a series as a whole. */
  readonly original: string | null;
  readonly override: Override | null;
  readonly times: Times;
  /** Milliseconds since 1970; of whole days as if they were UTC. */
  readonly startAt: number;
  readonly endAt: number;
}

/** Moments between which instances are looked for. `offset` of local time, by which whole days are compared. */
export interface Window {
  readonly from: number;
  readonly to: number;
  readonly offset: number;
}

const momentOf = (local: string, timezone: string | null): number => instantOf(wallOf(local), timezone ?? 'UTC');

export const durationOf = ({ startLocal, startTimezone, endLocal, endTimezone }: Times): number =>
  momentOf(endLocal, endTimezone) - momentOf(startLocal, startTimezone);

/**
 * The times of an instance that begins at `wall`: it lasts exactly as long as the series says. An end that falls where the
 * clock passes its local time for the second time is in UTC, since the local time stands for the first.
 */
export function timesAt(series: Times, wall: number, duration = durationOf(series)): Times {
  const { startTimezone, endTimezone } = series;
  const end = instantOf(wall, startTimezone ?? 'UTC') + duration;
  const local = localOf(wallAt(end, endTimezone ?? 'UTC'));
  const isSecond = momentOf(local, endTimezone) !== end;
  return {
    startLocal: localOf(wall),
    startTimezone,
    endLocal: isSecond ? localOf(end) : local,
    endTimezone: isSecond ? 'UTC' : endTimezone,
  };
}

/** The moments are those of the local times. */
function explicit(original: string | null, override: Override | null, times: Times): Instance {
  const { startLocal, startTimezone, endLocal, endTimezone } = times;
  const [startAt, endAt] = [momentOf(startLocal, startTimezone), momentOf(endLocal, endTimezone)];
  return { original, override, times, startAt, endAt };
}

function regular(series: Times, wall: number, duration = durationOf(series)): Instance {
  const startAt = instantOf(wall, series.startTimezone ?? 'UTC');
  const times = timesAt(series, wall, duration);
  return { original: localOf(wall), override: null, times, startAt, endAt: startAt + duration };
}

/** The instance that differs as `override` says, which is one of the series. */
export function changed(series: EventRow, override: Override, duration?: number): Instance {
  const wall = wallOf(override.originalStart);
  const times = overridden(override);
  return times ? explicit(override.originalStart, override, times) : { ...regular(series, wall, duration), override };
}

/** Merges the content of an event with that of an instance. A canceled series cancels all its instances. */
export const contentOf = (
  { content }: Pick<EventRow, 'content'>,
  override?: Pick<Override, 'patch'> | null,
): Content => ({
  ...content,
  ...override?.patch,
  ...(content.status === 'canceled' ? { status: content.status } : {}),
});

export const isCanceled = (event: Pick<EventRow, 'content'>, override?: Pick<Override, 'patch'> | null): boolean =>
  contentOf(event, override).status === 'canceled';

/** The times of an instance that was moved; null: it was not. */
export function overridden({ patch }: Pick<Override, 'patch'>): Times | null {
  const { startLocal, startTimezone, endLocal, endTimezone } = patch;
  return startLocal === undefined || endLocal === undefined
    ? null
    : { startLocal, startTimezone: startTimezone ?? null, endLocal, endTimezone: endTimezone ?? null };
}

/** The event or series itself. */
export const asItself = (event: EventRow): Instance => explicit(null, null, event);

/** Instances within the window, in no order. `overrides`: all that begin, or began by the rule, within it. */
export function instancesOf(event: EventRow, overrides: readonly Override[], window: Window): Instance[] {
  const { recurrence, startTimezone } = event;
  const shift = startTimezone === null ? window.offset : 0;
  const [from, to] = [window.from + shift, window.to + shift];
  const within = ({ startAt, endAt }: Instance): boolean => startAt < to && endAt > from;
  if (!recurrence) return [asItself(event)].filter(within);
  const duration = durationOf(event);
  const differing = new Set(overrides.map(({ originalStart }) => originalStart));
  // Local times are at most a day away from UTC.
  const walls = timesOf(wallOf(event.startLocal), recurrence, from - duration - DAY_MS, to + DAY_MS);
  return [
    ...walls.flatMap((wall) => {
      return differing.has(localOf(wall)) ? [] : [regular(event, wall, duration)];
    }),
    ...overrides.map((override) => changed(event, override, duration)),
  ].filter(within);
}

/** The instance that a series has at an original start; null: it has none there. */
export function instanceAt(event: EventRow, original: string, override: Override | null): Instance | null {
  const wall = wallOf(original);
  if (!event.recurrence || !hasTime(event, wall)) return null;
  return override ? changed(event, override) : regular(event, wall);
}

export const hasTime = (
  { startLocal, recurrence }: Pick<EventRow, 'startLocal' | 'recurrence'>,
  wall: number,
): boolean => recurrence !== null && timesOf(wallOf(startLocal), recurrence, wall, wall + 1).length > 0;

/** The moments between which all instances lie, as PostgreSQL reads them, with a day more on both sides. */
export function spanOf(event: EventRow, overrides: readonly Override[]): { firstAt: string; lastAt: string } {
  const { recurrence } = event;
  const duration = durationOf(event);
  const instances = [asItself(event), ...overrides.map((override) => changed(event, override, duration))];
  const last = recurrence && recurrence.rule !== null ? recurrence.last : wallOf(event.startLocal);
  const walls = recurrence ? [recurrence.added.at(0), recurrence.added.at(-1), last].filter((one) => one != null) : [];
  const bounds = walls.map((wall) => regular(event, wall, duration));
  const all = [...instances, ...bounds];
  const time = (instant: number): string => new Date(instant).toISOString();
  return {
    firstAt: time(Math.min(...all.map(({ startAt }) => startAt)) - DAY_MS),
    lastAt: last === null ? 'infinity' : time(Math.max(...all.map(({ endAt }) => endAt)) + DAY_MS),
  };
}

/** The event is over, with all its instances: changes to it are not announced. */
export function hasEnded(event: EventRow, overrides: readonly Override[]): boolean {
  const { lastAt } = spanOf(event, overrides);
  return lastAt !== 'infinity' && Date.parse(lastAt) < platformTime();
}

/** When an instance takes place that differs from its series. */
export const instanceTimes = (event: EventRow, override: Override): Times =>
  overridden(override) ?? timesAt(event, wallOf(override.originalStart));

/** The moments of start and end; of whole days as if they were UTC. */
export function momentsOf({ startLocal, startTimezone, endLocal, endTimezone }: Times) {
  const [start, end] = [momentOf(startLocal, startTimezone), momentOf(endLocal, endTimezone)];
  return { startAt: new Date(start).toISOString(), endAt: new Date(end).toISOString() };
}

/** The key under which answers and membership of an attendee are kept. */
export const keyOf = ({ userId, email }: Pick<Attendee, 'userId' | 'email'>): string => userId ?? email ?? '';

const moment = (local: string, timezone: string | null): Moment =>
  timezone === null ? { date: local.slice(0, 10) } : { dateTime: local, timezone };

/** The id of an instance. */
export const instanceId = ({ eventId, startTimezone }: EventRow, original: string): string =>
  `${eventId}_${compactOf(wallOf(original), startTimezone === null)}`;

/** A caller sees all of an event, or what a reader of its record sees. */
export interface Sight {
  /** false: of private ones, and of private instances, nothing but when. */
  readonly isPart: boolean;
  /** false: they cannot read the record that it is on, if there is one. */
  readonly readsRecord: boolean;
}

/** The event as callers read it. */
export function present(
  event: EventRow,
  { original, override, times }: Instance,
  { isPart, readsRecord }: Sight,
): CalendarEvent {
  const { recurrence, startTimezone } = event;
  const content = contentOf(event, override);
  const full = isPart || content.visibility !== 'private';
  const anchor = { wall: wallOf(event.startLocal), timezone: startTimezone };
  return {
    eventId: original === null ? event.eventId : instanceId(event, original),
    calendarId: event.calendarId,
    iCalUid: uidOf(event),
    title: full ? content.title : null,
    description: full ? content.description : null,
    location: full ? content.location : null,
    start: moment(times.startLocal, times.startTimezone),
    end: moment(times.endLocal, times.endTimezone),
    allDay: startTimezone === null,
    recurrence: original === null && recurrence ? writeRecurrence(recurrence, anchor) : null,
    recurringEventId: original === null ? null : event.eventId,
    originalStart: original === null ? null : moment(original, startTimezone),
    status: content.status,
    visibility: content.visibility,
    busy: content.busy,
    organizerId: event.calendarId,
    attendees: full
      ? event.attendees.map(({ userId, email, optional, response, comment }) => ({
          userId,
          email,
          optional,
          ...((userId !== null && override?.responses[userId]) || { response, comment }),
        }))
      : [],
    reminders: full ? content.reminders : [],
    record:
      full && readsRecord && event.objectApiName !== null && event.recordId !== null
        ? { objectApiName: event.objectApiName, id: event.recordId }
        : null,
    sequence: event.sequence,
    createdAt: formatTimestamp(new Date(event.createdAt)),
    updatedAt: formatTimestamp(new Date(event.updatedAt)),
  };
}

export const uidOf = ({ eventId }: Pick<EventRow, 'eventId'>): string => `${eventId}@erp`;
