/** Times as users write them, in the time zone of this machine. */
import { usage } from '../failure.ts';

/** IANA name of the time zone of this machine. */
export const localTimeZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

const TIME = /^\d{4}-\d\d-\d\d(T|$)/;
export const isDay = (text: string): boolean => /^\d{4}-\d\d-\d\d$/.test(text);

/** From a day, its midnight on this machine, or a time; without an offset it is that of this machine. */
function parseTime(text: string): Date {
  const time = new Date(isDay(text) ? `${text}T00:00:00` : text);
  if (TIME.test(text) && !Number.isNaN(time.getTime())) return time;
  throw usage(`${text} is no time.`, 'Write 2026-11-23, 2026-11-23T09:30 or 2026-11-23T09:30:00+01:00.');
}

/** RFC 3339 with the offset of this machine at that time. */
export function withOffset(time: Date): string {
  const minutes = -time.getTimezoneOffset();
  const local = new Date(time.getTime() + minutes * 60_000).toISOString().slice(0, 'YYYY-MM-DDTHH:mm:ss'.length);
  const two = (count: number): string => String(Math.trunc(count)).padStart(2, '0');
  return `${local}${minutes < 0 ? '-' : '+'}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
}

const DAYS = 7;

/** A period, by default seven days from today on. */
export function periodOf({ from, to }: { from?: string | undefined; to?: string | undefined }): {
  from: string;
  to: string;
} {
  const begin = from === undefined ? new Date(Date.now()) : parseTime(from);
  if (from === undefined) begin.setHours(0, 0, 0, 0);
  const end = to === undefined ? new Date(begin) : parseTime(to);
  if (to === undefined) end.setDate(end.getDate() + DAYS);
  return { from: withOffset(begin), to: withOffset(end) };
}
