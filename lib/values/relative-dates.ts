/**
 * Dates relative to now (`TODAY`, `LAST_N_DAYS:30`), as ranges of days in the user's time zone. A week begins on Monday
 * (ISO 8601). A day has 23 or 25 hours when the clocks of the zone change.
 * Source: docs/reference/querying.md.
 */
import { dateOfDay } from './calendar.ts';

/** Days since 1970-01-01: `from` belongs to the range, `to` does not. */
interface DayRange {
  readonly from: number;
  readonly to: number;
}

const DAY_MS = 86_400_000;
const N_DAYS_MAX = 36_500;

export const RELATIVE_DATES = [
  'TODAY',
  'YESTERDAY',
  'TOMORROW',
  'THIS_WEEK',
  'LAST_WEEK',
  'THIS_MONTH',
  'LAST_MONTH',
  'THIS_QUARTER',
  'THIS_YEAR',
  'LAST_N_DAYS:n',
  'NEXT_N_DAYS:n',
] as const;

/** The day that it is at `now` in `timezone`. */
export const dayAt = (now: number, timezone: string): number => Math.floor(localTime(now, timezone) / DAY_MS);

/** The days that a literal means at `now` in `timezone`; null when the text is no such literal. */
export function relativeDays(literal: string, now: number, timezone: string): DayRange | null {
  const match = /^(?:(LAST|NEXT)_N_DAYS:([1-9]\d{0,4})|[A-Z_]{5,12})$/.exec(literal);
  if (!match) return null;
  const today = dayAt(now, timezone);
  if (match[1]) {
    const n = Number(match[2]);
    if (n > N_DAYS_MAX) return null;
    return match[1] === 'LAST' ? { from: today - n, to: today + 1 } : { from: today + 1, to: today + n + 1 };
  }
  const monday = today - ((today + 3) % 7); // day 0 was a Thursday
  const [year = 0, month = 0] = dateOfDay(today).split('-').map(Number);
  const firstOf = (y: number, m: number): number => Date.UTC(y, m, 1) / DAY_MS;
  switch (literal) {
    case 'TODAY':
      return { from: today, to: today + 1 };
    case 'YESTERDAY':
      return { from: today - 1, to: today };
    case 'TOMORROW':
      return { from: today + 1, to: today + 2 };
    case 'THIS_WEEK':
      return { from: monday, to: monday + 7 };
    case 'LAST_WEEK':
      return { from: monday - 7, to: monday };
    case 'THIS_MONTH':
      return { from: firstOf(year, month - 1), to: firstOf(year, month) };
    case 'LAST_MONTH':
      return { from: firstOf(year, month - 2), to: firstOf(year, month - 1) };
    case 'THIS_QUARTER': {
      const first = month - 1 - ((month - 1) % 3);
      return { from: firstOf(year, first), to: firstOf(year, first + 3) };
    }
    case 'THIS_YEAR':
      return { from: firstOf(year, 0), to: firstOf(year + 1, 0) };
    default:
      return null;
  }
}

/** The first moment of a day in a time zone, in milliseconds since 1970. */
export function startOfDay(day: number, timezone: string): number {
  const midnight = day * DAY_MS;
  const guess = midnight - offsetAt(midnight, timezone);
  const start = midnight - offsetAt(guess, timezone);
  if (localTime(start, timezone) === midnight && localTime(start - 1, timezone) < midnight) return start;
  // Clocks change around this midnight: it does not exist, or exists twice. Search for the beginning of the day.
  let before = midnight - 2 * DAY_MS;
  let after = midnight + 2 * DAY_MS;
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (localTime(middle, timezone) < midnight) before = middle;
    else after = middle;
  }
  return after;
}

/** The local time in the zone, as if it were UTC. */
export function localTime(instant: number, timezone: string): number {
  return instant + offsetAt(instant, timezone);
}

const formats = new Map<string, Intl.DateTimeFormat>();

function offsetAt(instant: number, timezone: string): number {
  if (timezone === 'UTC') return 0;
  let format = formats.get(timezone);
  if (!format) {
    format = formatFor(timezone);
    if (formats.size >= 1_000) formats.clear();
    formats.set(timezone, format);
  }
  const parts: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
  let beforeChrist = false;
  for (const { type, value } of format.formatToParts(instant)) {
    parts[type] = Number(value);
    if (type === 'era') beforeChrist = value.startsWith('B');
  }
  const { year = 0, month = 0, day: dayOfMonth, hour = 0, minute = 0, second = 0 } = parts;
  // Date.UTC would read the years 0 to 99 as 1900 to 1999.
  const day = new Date(0).setUTCFullYear(beforeChrist ? 1 - year : year, month - 1, dayOfMonth);
  const shown = day + ((hour * 60 + minute) * 60 + second) * 1000;
  return shown - Math.floor(instant / 1000) * 1000;
}

/** An unknown zone counts as UTC: a query must not fail because of an outdated setting of a user. */
function formatFor(timeZone: string): Intl.DateTimeFormat {
  const options = {
    hourCycle: 'h23',
    era: 'short',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  } as const;
  try {
    return new Intl.DateTimeFormat('en-US', { ...options, timeZone });
  } catch {
    return new Intl.DateTimeFormat('en-US', { ...options, timeZone: 'UTC' });
  }
}
