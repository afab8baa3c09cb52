/** Reads what callers say of an event: everything that is wrong is found at once, with pointers. */
import type { EventChange, Moment } from '../../../contracts/calendar.ts';
import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { isDate } from '../../../lib/values/calendar.ts';
import { mailAddress } from '../../../lib/values/mail-address.ts';
import { isTimezone } from '../../../lib/values/time.ts';
import { type Anchor, type Recurrence, readRecurrence } from '../recurrence/rule.ts';
import { DAY_MS, exists, IN_YEARS, isInYears, localOf, wallOf } from '../recurrence/times.ts';
import { type Attendee, type Content, durationOf, keyOf, type Times } from './event.ts';

export class Problems {
  readonly #found: Violation[] = [];

  add(pointer: string, message: string, code: 'PARAMETER_INVALID' | 'RECURRENCE_INVALID' = 'PARAMETER_INVALID'): void {
    this.#found.push(violation(pointer, code, message));
  }

  /** 422 when recurrence alone is wrong, else 400; with all that was found. */
  throwIfAny(): void {
    const [first] = this.#found;
    if (!first) return;
    const other = this.#found.find(({ code }) => code !== 'RECURRENCE_INVALID');
    throw other
      ? new PlatformError('PARAMETER_INVALID', other.message, { errors: this.#found })
      : new PlatformError('RECURRENCE_INVALID', first.message, { errors: this.#found });
  }
}

/** Start and end; null when they are wrong, or neither is given. */
export function readTimes({ start, end }: Pick<EventChange, 'start' | 'end'>, problems: Problems): Times | null {
  if (start === undefined && end === undefined) return null;
  if (start === undefined || end === undefined) {
    problems.add(start === undefined ? '/start' : '/end', 'start and end are given together.');
    return null;
  }
  const [first, last] = [readMoment(start, '/start', problems), readMoment(end, '/end', problems)];
  if (!first || !last) return null;
  const times: Times = {
    startLocal: first.local,
    startTimezone: first.timezone,
    endLocal: last.local,
    endTimezone: last.timezone,
  };
  if ((first.timezone === null) !== (last.timezone === null)) {
    problems.add('/end', 'start and end both have `date`, or both `dateTime`.');
    return null;
  }
  const duration = durationOf(times);
  if (duration <= 0)
    problems.add('/end', 'The end is after the start; of whole days, it is the first day that is free again.');
  else if (duration > LIMITS.calendar_event_days_max * DAY_MS)
    problems.add('/end', `An event lasts ${LIMITS.calendar_event_days_max} days at most.`);
  else return times;
  return null;
}

function readMoment({ date, dateTime, timezone }: Moment, pointer: string, problems: Problems) {
  if (date !== undefined) {
    if (dateTime !== undefined || timezone !== undefined)
      problems.add(pointer, '`date` stands alone, without `dateTime` and `timezone`.');
    else if (!isDate(date) || !isInYears(date)) problems.add(`${pointer}/date`, `Not a day ${IN_YEARS}.`);
    else return { local: `${date}T00:00:00`, timezone: null };
    return null;
  }
  if (dateTime === undefined || timezone === undefined) {
    problems.add(pointer, 'Takes `dateTime` with `timezone`, or `date`.');
    return null;
  }
  const local = dateTime.length === 16 ? `${dateTime}:00` : dateTime;
  const isTime = isDate(local.slice(0, 10)) && isInYears(local) && /T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d$/.test(local);
  const isZone = isTimezone(timezone);
  if (!isTime) problems.add(`${pointer}/dateTime`, `Not a time of a day ${IN_YEARS}.`);
  if (!isZone) problems.add(`${pointer}/timezone`, 'Not an IANA time zone such as Europe/Berlin.');
  if (!isTime || !isZone) return null;
  if (!exists(wallOf(local), timezone)) {
    problems.add(`${pointer}/dateTime`, `The clocks of ${timezone} skip this time: it does not exist on that day.`);
    return null;
  }
  return { local: localOf(wallOf(local)), timezone };
}

/** The recurrence that the lines say for an event with this start; null when they are wrong. */
export async function readLines(
  lines: readonly string[],
  times: Times,
  problems: Problems,
): Promise<Recurrence | null> {
  const read = await readRecurrence(lines, anchorOf(times));
  if ('value' in read) return read.value;
  for (const { line, message } of read.problems)
    problems.add(line === null ? '/recurrence' : `/recurrence/${line}`, message, 'RECURRENCE_INVALID');
  return null;
}

export const anchorOf = ({ startLocal, startTimezone }: Times): Anchor => ({
  wall: wallOf(startLocal),
  timezone: startTimezone,
});

export function checkTitle({ title }: Pick<EventChange, 'title'>, problems: Problems): void {
  if (title?.trim() === '') problems.add('/title', 'The title is blank.');
}

/** Mails to this machine itself reach nobody outside. */
const LOCAL = /@localhost$/;

/** The attendees, with what those have answered who were there before; the organizer is none of them. */
export function readAttendees(
  given: NonNullable<EventChange['attendees']>,
  organizerId: string,
  before: readonly Attendee[],
  problems: Problems,
): Attendee[] {
  const known = new Map(before.map((one) => [keyOf(one), one]));
  const seen = new Set<string>();
  return given.flatMap((one, i) => {
    const pointer = `/attendees/${i}`;
    const userId = one.userId?.toLowerCase() ?? null;
    const email = one.email === undefined ? null : mailAddress(one.email);
    if ((one.userId === undefined) === (one.email === undefined)) problems.add(pointer, 'Takes `userId` or `email`.');
    else if (one.email !== undefined && (email === null || LOCAL.test(email)))
      problems.add(`${pointer}/email`, 'Not a mail address.');
    else if (userId === organizerId) problems.add(`${pointer}/userId`, 'The organizer attends without being invited.');
    else {
      const key = keyOf({ userId, email }).toLowerCase();
      if (seen.has(key)) problems.add(pointer, 'Is invited twice.');
      seen.add(key);
    }
    const earlier = known.get(keyOf({ userId, email }));
    const { response = 'needsAction', comment = null } = earlier ?? {};
    const untold = earlier ? earlier.untold : email !== null;
    return [{ userId, email, optional: one.optional ?? false, response, comment, ...(untold ? { untold } : {}) }];
  });
}

const CONTENT = ['title', 'description', 'location', 'status', 'visibility', 'busy', 'reminders'] as const;

/** The properties of the content that are given. */
export const contentIn = (body: EventChange): Partial<Content> =>
  Object.fromEntries(CONTENT.flatMap((name) => (body[name] === undefined ? [] : [[name, body[name]]])));

export const NEW_CONTENT: Omit<Content, 'title'> = {
  description: null,
  location: null,
  status: 'confirmed',
  visibility: 'default',
  busy: true,
  reminders: [],
};
