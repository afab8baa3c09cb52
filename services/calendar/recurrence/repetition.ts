/** Reads from a recurrence what people can say in words. Pure. */
import { type Repetition, type RepetitionPattern, WEEKDAYS } from '../../../lib/repetition.ts';
import { type Recurrence, timesOf } from './rule.ts';
import { DAY_MS, localOf } from './times.ts';

/** `start`: of the series. `differ`: there are instances that differ from it. */
export function repetitionOf(start: number, recurrence: Recurrence, differ: boolean): Repetition {
  const { rule, count, until, added, left } = recurrence;
  const pattern = rule === null ? null : patternOf(start, rule);
  const last =
    rule === null ? (added.at(-1) ?? null) : until === null ? null : lastTime(start, recurrence, pattern, until);
  return {
    pattern,
    count,
    until: last === null ? null : localOf(last).slice(0, 10),
    exceptions: rule !== null && (differ || added.length > 0 || left.length > 0),
  };
}

const DAYS = { day: 1, week: 7, month: 31, year: 366 } as const;

/** The last time of the rule up to `until`, which need not be one; `until`, where it is more than a period away. */
function lastTime(start: number, recurrence: Recurrence, pattern: RepetitionPattern | null, until: number): number {
  const { unit, interval } = pattern ?? { unit: 'day', interval: 1 };
  const from = Math.max(start, until - (DAYS[unit] * interval + 1) * DAY_MS);
  return timesOf(start, { ...recurrence, added: [], left: [] }, from, until + 1).at(-1) ?? until;
}

/** null: it is none that people speak of. */
function patternOf(start: number, rule: string): RepetitionPattern | null {
  const parts: Record<string, string> = Object.fromEntries(rule.split(';').map((part) => part.split('=')));
  const { FREQ, INTERVAL = '1', WKST: _, ...by } = parts;
  const date = new Date(start);
  const interval = Number(INTERVAL);
  const plain = { interval, weekdays: [], place: null, monthDay: null };
  const names = Object.keys(by).sort().join();
  const days = by['BYDAY']?.split(',') ?? [];
  const weekdays = WEEKDAYS.filter((day) => days.includes(day));
  const areWeekdays = names === 'BYDAY' && weekdays.length === days.length;
  const ofStart = WEEKDAYS.filter((_day, n) => n === (date.getUTCDay() + 6) % 7);
  switch (FREQ) {
    case 'DAILY':
      if (names === '') return { ...plain, unit: 'day' };
      return areWeekdays && interval === 1 ? { ...plain, unit: 'week', weekdays } : null;
    case 'WEEKLY':
      if (names === '') return { ...plain, unit: 'week', weekdays: ofStart };
      return areWeekdays ? { ...plain, unit: 'week', weekdays } : null;
    case 'MONTHLY': {
      const isOnItsDay = names === '' || (names === 'BYMONTHDAY' && by['BYMONTHDAY'] === String(date.getUTCDate()));
      if (isOnItsDay) return { ...plain, unit: 'month', monthDay: date.getUTCDate() };
      const placed =
        names === 'BYDAY,BYSETPOS' ? `${by['BYSETPOS']}${by['BYDAY']}` : names === 'BYDAY' ? by['BYDAY'] : '';
      const [, place, day] = /^\+?(-1|[1-5])([A-Z]{2})$/.exec(placed ?? '') ?? [];
      return place === undefined
        ? null
        : { ...plain, unit: 'month', weekdays: WEEKDAYS.filter((one) => one === day), place: Number(place) };
    }
    default: {
      const { BYMONTH = String(date.getUTCMonth() + 1), BYMONTHDAY = String(date.getUTCDate()), ...others } = by;
      const isOnItsDay = BYMONTH === String(date.getUTCMonth() + 1) && BYMONTHDAY === String(date.getUTCDate());
      // A day without its month is one of each month.
      return isOnItsDay && names !== 'BYMONTHDAY' && Object.keys(others).length === 0
        ? { ...plain, unit: 'year' }
        : null;
    }
  }
}
