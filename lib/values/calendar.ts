/** Dates and times from text to text, independent of the time zone of the machine. */

export function daysInMonth(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** `2026-11-21` of the years 0001 to 9999, a day that exists. */
export function isDate(text: string): boolean {
  const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text);
  if (!match) return false;
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  return year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month);
}

const INSTANT = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/**
 * Milliseconds since 1970 of an RFC 3339 date-time with offset; finer fractions are truncated; null when the text is
 * invalid.
 */
export function readInstant(text: string): number | null {
  const match = INSTANT.exec(text) ?? [];
  const [, date = ''] = match;
  if (!isDate(date)) return null;
  const [hour, minute, second] = [Number(match[2]), Number(match[3]), Number(match[4])];
  const [offsetHour, offsetMinute] = [Number(match[7] ?? 0), Number(match[8] ?? 0)];
  if (hour > 23 || minute > 59 || second > 59 || offsetHour > 23 || offsetMinute > 59) return null;
  const offset = (match[6] === '-' ? -1 : 1) * (offsetHour * 60 + offsetMinute) * 60_000;
  const fraction = (match[5] ?? '').slice(0, 3).padEnd(3, '0');
  const time = Date.parse(`${date}T${match[2]}:${match[3]}:${match[4]}.${fraction}Z`) - offset;
  return time >= FIRST_INSTANT && time <= LAST_INSTANT ? time : null;
}

const FIRST_INSTANT = Date.parse('0001-01-01T00:00:00.000Z');
const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z');

/** `HH:MM`, `HH:MM:SS` or with a fraction, of which milliseconds are kept; null when it is no time of day. */
export function readTime(text: string): string | null {
  const match = /^(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?$/.exec(text);
  if (!match) return null;
  const [hour, minute, second] = [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)];
  if (hour > 23 || minute > 59 || second > 59) return null;
  const fraction = (match[4] ?? '').slice(0, 3).replace(/(?<!0)0+$/, '');
  return `${match[1]}:${match[2]}:${match[3] ?? '00'}${fraction ? `.${fraction}` : ''}`;
}

/** Day number (0 = 1970-01-01) of a date that `isDate` accepts. */
export const dayNumber = (date: string): number => Date.parse(`${date}T00:00:00.000Z`) / 86_400_000;

export const dateOfDay = (day: number): string => new Date(day * 86_400_000).toISOString().slice(0, 10);
