/**
 * Local times and the moments they stand for. A local time is the text `2026-11-21T09:30:00`, or `wall`: the milliseconds
 * since 1970 that it would be in UTC, with which days and weeks can be counted. Pure.
 */
import { Temporal } from 'temporal-polyfill';

export const DAY_MS = 86_400_000;

export const wallOf = (local: string): number => Date.parse(`${local}Z`);

export const localOf = (wall: number): string => new Date(wall).toISOString().slice(0, 19);

/**
 * The moment of a local time, in milliseconds since 1970. A time that the clock passes twice is the first one; one that it
 * skips is as far behind the skip as it says, like an explicit time of RFC 5545 (section 3.3.5).
 */
export function instantOf(wall: number, timezone: string): number {
  if (timezone === 'UTC') return wall;
  return Temporal.PlainDateTime.from(localOf(wall)).toZonedDateTime(timezone).epochMilliseconds;
}

/** The local time of a moment. */
export function wallAt(instant: number, timezone: string): number {
  if (timezone === 'UTC') return instant;
  const zoned = Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(timezone);
  return instant + zoned.offsetNanoseconds / 1_000_000;
}

/** False: the clock skips this time on that day. */
export const exists = (wall: number, timezone: string): boolean => wallAt(instantOf(wall, timezone), timezone) === wall;

/** Moments of other centuries have no time zones that anybody maintains. */
const FIRST_YEAR = 1970;
const LAST_YEAR = 2199;
export const IN_YEARS = `from ${FIRST_YEAR} to ${LAST_YEAR}`;

/** Of a text that begins with a year. */
export const isInYears = (text: string): boolean => {
  const year = Number(text.slice(0, 4));
  return year >= FIRST_YEAR && year <= LAST_YEAR;
};
