/** Hours of the day in which a user gets no mails. */
import { localTime } from '../../lib/values/relative-dates.ts';

/** HH:MM in the time zone of the user; `to` before `from` is on the next day. */
export interface QuietHours {
  readonly from: string;
  readonly to: string;
}

const MINUTE = 60_000;
const DAY = 24 * 60;

const minuteOf = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));

const minuteAt = (instant: number, timezone: string): number =>
  ((Math.floor(localTime(instant, timezone) / MINUTE) % DAY) + DAY) % DAY;

/** The first moment from `instant` on that is outside of them, in milliseconds since 1970. */
export function afterQuietHours(instant: number, quiet: QuietHours | null, timezone: string): number {
  if (!quiet) return instant;
  const [from, to] = [minuteOf(quiet.from), minuteOf(quiet.to)];
  const passed = (minuteAt(instant, timezone) - from + DAY) % DAY;
  const length = (to - from + DAY) % DAY;
  if (passed >= length) return instant;
  const end = Math.floor(instant / MINUTE) * MINUTE + (length - passed) * MINUTE;
  // Clocks may change in between: then the end is that many minutes earlier or later.
  const off = minuteAt(end, timezone) - to;
  return end - (off > DAY / 2 ? off - DAY : off < -DAY / 2 ? off + DAY : off) * MINUTE;
}
