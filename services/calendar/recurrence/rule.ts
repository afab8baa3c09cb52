/**
 * Recurrence of an event as RFC 5545 writes it: one RRULE, and days that are added or left out. Rules repeat by whole days
 * at least. Pure.
 */
import { RRuleTemporal } from 'rrule-temporal';
import { LIMITS } from '../../../lib/limits.ts';
import { isDate } from '../../../lib/values/calendar.ts';
import { isTimezone } from '../../../lib/values/time.ts';
import { inTurns } from '../events/turns.ts';
import { DAY_MS, IN_YEARS, instantOf, isInYears, localOf, wallAt, wallOf } from './times.ts';

/** How a series repeats; times are local ones in its time zone, as wall (times.ts). */
export interface Recurrence {
  /** Parts of the RRULE without COUNT and UNTIL; null: the start and `added` alone. */
  readonly rule: string | null;
  readonly count: number | null;
  readonly until: number | null;
  /** The last time by the rule; null: it has no end. */
  readonly last: number | null;
  readonly added: readonly number[];
  readonly left: readonly number[];
}

/** The start that a recurrence belongs to. */
export interface Anchor {
  readonly wall: number;
  /** null: whole days. */
  readonly timezone: string | null;
}

/** A line that is wrong, and why. */
interface Problem {
  /** Of the list of lines; null: the list as a whole, or the start. */
  readonly line: number | null;
  readonly message: string;
}

/** Periods that are looked through for one answer. */
const ITERATIONS_MAX = 10_000;
/** Rules end here at the latest: PostgreSQL and the local times reject years of five digits. */
const LAST_WALL = wallOf('9000-01-01T00:00:00');
const CANDIDATES_MAX = 50_000;
/** With BYSETPOS the library makes every value of every period before it picks; so many take a fraction of 100 ms. */
const PICKED_FROM_MAX = 5_000;

const DATES_MAX = LIMITS.calendar_exceptions_max;
const TOO_MANY_DATES = `RDATE and EXDATE have at most ${DATES_MAX} times each.`;

const FREQUENCIES = ['DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY'];
const list = (value: string, most: number): boolean =>
  value.split(',').every((one) => /^[+-]?\d{1,3}$/.test(one) && Number(one) !== 0 && Math.abs(Number(one)) <= most);
const positive = (value: string, most: number): boolean =>
  /^\d{1,9}$/.test(value) && Number(value) >= 1 && Number(value) <= most;

/** Parts of a rule with the form of their values; those that are missing here are refused. */
const PARTS: Readonly<Record<string, (value: string) => boolean>> = {
  FREQ: (value) => FREQUENCIES.includes(value),
  INTERVAL: (value) => positive(value, LIMITS.calendar_rule_interval_max),
  COUNT: (value) => positive(value, LIMITS.calendar_rule_count_max),
  UNTIL: (value) => /^\d{8}(?:T\d{6}Z?)?$/.test(value) && readTime(value) !== null,
  WKST: (value) => /^(?:MO|TU|WE|TH|FR|SA|SU)$/.test(value),
  BYDAY: (value) =>
    value.split(',').every((one) => /^(?:[+-]?(?:[1-9]|[1-4]\d|5[0-3]))?(?:MO|TU|WE|TH|FR|SA|SU)$/.test(one)),
  BYMONTH: (value) => value.split(',').every((one) => positive(one, 12)),
  BYMONTHDAY: (value) => list(value, 31),
  BYYEARDAY: (value) => list(value, 366),
  BYWEEKNO: (value) => list(value, 53),
  BYSETPOS: (value) => list(value, 366),
};

/** `20261121` or `20261121T093000`, with Z or not, as wall; null: there is no such time. */
function readTime(text: string): number | null {
  const [, year, month, day, hour = '00', minute = '00', second = '00'] =
    /^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)Z?)?$/.exec(text) ?? [];
  const date = `${year}-${month}-${day}`;
  if (!isDate(date) || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null;
  return wallOf(`${date}T${hour}:${minute}:${second}`);
}

/** A time as the lines write it, without Z. */
export const compactOf = (wall: number, days: boolean): string => {
  const text = localOf(wall).replaceAll(/[-:]/g, '');
  return days ? text.slice(0, 8) : text;
};

export const readCompact = readTime;

type Read<T> = { readonly value: T } | { readonly problem: string };

/** The recurrence that the lines say, or everything that is wrong with them. */
export async function readRecurrence(
  lines: readonly string[],
  anchor: Anchor,
): Promise<{ value: Recurrence } | { problems: Problem[] }> {
  const problems: Problem[] = [];
  const added = new Set<number>();
  const left = new Set<number>();
  let rule: Recurrence | null = null;
  let rules = 0;
  let given = 0;
  for (const [line, text] of lines.entries()) {
    const [, name = '', parameters = '', value = ''] = /^([A-Za-z]+)((?:;[^:;]+)*):(.*)$/.exec(text) ?? [];
    const kind = name.toUpperCase();
    if (kind === 'RRULE' && parameters === '') {
      rules++;
      // A rule takes long to be expanded, so one is, whatever is wrong with it.
      const read =
        rules > 1 ? { problem: 'An event has one RRULE at most.' } : await readRule(value.toUpperCase(), anchor);
      if ('problem' in read) problems.push({ line, message: read.problem });
      else rule = read.value;
    } else if (kind === 'RDATE' || kind === 'EXDATE') {
      const texts = value.split(',');
      given += texts.length;
      const read =
        given > 2 * DATES_MAX
          ? { problem: TOO_MANY_DATES }
          : readDates(parameters.toUpperCase() === ';VALUE=DATE' ? '' : parameters, texts, anchor);
      if ('problem' in read) problems.push({ line, message: read.problem });
      else for (const wall of read.value) (kind === 'RDATE' ? added : left).add(wall);
    } else problems.push({ line, message: 'A line begins with RRULE:, RDATE or EXDATE (RFC 5545).' });
  }
  for (const dates of [added, left]) if (dates.size > DATES_MAX) problems.push({ line: null, message: TOO_MANY_DATES });
  if (problems.length === 0 && !rule && added.size === 0)
    problems.push({ line: null, message: 'Without an RRULE or an RDATE nothing repeats.' });
  if (problems.length > 0) return { problems };
  const found = rule ?? { rule: null, count: null, until: null, last: null };
  const sorted = (dates: ReadonlySet<number>): number[] => [...dates].sort((a, b) => a - b);
  return { value: { ...found, added: sorted(added), left: sorted(left) } };
}

async function readRule(text: string, anchor: Anchor): Promise<Read<Recurrence>> {
  const parts = new Map<string, string>();
  for (const part of text.split(';')) {
    const [name = '', value = '', ...more] = part.split('=');
    if (more.length > 0 || parts.has(name)) return { problem: `${name} stands twice, or is malformed.` };
    if (!Object.hasOwn(PARTS, name))
      return {
        problem: `${name.slice(0, 20) || 'An empty part'} is not supported: rules repeat by days or longer periods.`,
      };
    if (!PARTS[name]?.(value)) return { problem: `${name} has a value that is not supported: ${value.slice(0, 40)}.` };
    parts.set(name, value);
  }
  const problem = contradiction(parts);
  if (problem !== null) return { problem };
  const until = parts.get('UNTIL');
  const count = parts.get('COUNT');
  const rule = [...parts].filter(([name]) => name !== 'COUNT' && name !== 'UNTIL');
  const wanted = {
    rule: rule.map((part) => part.join('=')).join(';'),
    count: count === undefined ? null : Number(count),
    until: until === undefined ? null : untilOf(until, anchor),
  };
  return bounded(wanted, anchor);
}

function contradiction(parts: ReadonlyMap<string, string>): string | null {
  const frequency = parts.get('FREQ');
  if (frequency === undefined) return 'FREQ is missing.';
  if (parts.has('COUNT') && parts.has('UNTIL')) return 'COUNT and UNTIL exclude each other.';
  const by = [...parts].filter(([name]) => name.startsWith('BY'));
  const values = by.reduce((sum, [, value]) => sum + value.split(',').length, 0);
  if (values > LIMITS.calendar_rule_values_max)
    return `The BY… parts have at most ${LIMITS.calendar_rule_values_max} values together.`;
  if (parts.has('BYSETPOS') && by.length === 1) return 'BYSETPOS needs another BY… part.';
  if (parts.has('BYSETPOS') && Number(parts.get('COUNT') ?? 1) * values > PICKED_FROM_MAX)
    return `With BYSETPOS, COUNT times the values of the BY… parts is at most ${PICKED_FROM_MAX}.`;
  if (frequency === 'WEEKLY' && parts.has('BYMONTHDAY')) return 'BYMONTHDAY does not go with WEEKLY.';
  if (frequency !== 'YEARLY' && (parts.has('BYYEARDAY') || parts.has('BYWEEKNO')))
    return 'BYYEARDAY and BYWEEKNO go with YEARLY alone.';
  const numbered = /\d/.test(parts.get('BYDAY') ?? '');
  if (numbered && (frequency === 'DAILY' || frequency === 'WEEKLY' || parts.has('BYWEEKNO')))
    return 'Numbers in BYDAY go with MONTHLY, and with YEARLY without BYWEEKNO.';
  return null;
}

/** A day is meant with all of its times; UTC is meant as RFC 5545 has it. */
function untilOf(text: string, { timezone }: Anchor): number {
  const wall = Math.min(readTime(text) ?? 0, LAST_WALL);
  if (timezone === null) return wall - (wall % DAY_MS);
  if (text.endsWith('Z')) return wallAt(wall, timezone);
  return text.includes('T') ? wall : wall + DAY_MS - 1_000;
}

/** Finds the last time of a rule that ends, and refuses rules that do not begin with the start. */
export async function bounded(
  { rule, count, until }: Pick<Recurrence, 'rule' | 'count' | 'until'>,
  { wall }: Anchor,
): Promise<Read<Recurrence>> {
  const none = { added: [], left: [] };
  if (rule === null) return { value: { rule, count, until, last: null, ...none } };
  try {
    const [first] = between({ rule, last: until }, wall, wall, wall);
    if (first === undefined) return { problem: `The start, ${localOf(wall)}, is not a time of the rule.` };
    if (count === null) return { value: { rule, count, until, last: until, ...none } };
    let missing = count;
    for await (const times of inTurns(parts(rule, wall, LAST_WALL))) {
      const last = times[missing - 1];
      if (last !== undefined) return { value: { rule, count, until, last, ...none } };
      missing -= times.length;
    }
    return { problem: `The rule has fewer times than COUNT before ${localOf(LAST_WALL).slice(0, 10)}.` };
  } catch {
    return { problem: 'The rule takes too many steps between its times; choose a longer FREQ or fewer times.' };
  }
}

/** Counts the times of a series' rule before `wall`. */
export async function countBefore({ rule, last }: Recurrence, start: number, wall: number): Promise<number> {
  if (rule === null) return 0;
  let count = 0;
  for await (const times of inTurns(parts(rule, start, Math.min(wall, last === null ? wall : last + 1))))
    count += times.length;
  return count;
}

const PERIOD_DAYS: Readonly<Record<string, number>> = { DAILY: 1, WEEKLY: 7, MONTHLY: 31, YEARLY: 366 };
/** A time costs up to 0.2 ms, a period without one a tenth of that: parts of these sizes take some milliseconds. */
const TIMES_OF_PART = 50;
const PERIODS_OF_PART = 100;

/** The times of a rule from its start up to before `end`, in parts between which others can have their turn. */
function* parts(rule: string, wall: number, end: number): Generator<number[]> {
  const [, frequency = ''] = /FREQ=(\w+)/.exec(rule) ?? [];
  const [, interval = '1'] = /INTERVAL=(\d+)/.exec(rule) ?? [];
  const period = (PERIOD_DAYS[frequency] ?? 1) * Number(interval) * DAY_MS;
  const expanded = ruleOf(rule, wall);
  let periods = 1;
  let looked = 0;
  for (let from = wall; from < end; ) {
    looked += periods;
    if (looked > ITERATIONS_MAX) throw new Error('The rule takes too many steps.');
    const to = Math.min(from + periods * period, end);
    const times = timesBetween(expanded, from, to - 1);
    yield times;
    from = to;
    if (times.length < TIMES_OF_PART) periods = Math.min(2 * periods, PERIODS_OF_PART);
  }
}

function readDates(parameters: string, texts: readonly string[], { timezone }: Anchor): Read<number[]> {
  const [, zone] = /^;TZID=(.{1,64})$/i.exec(parameters) ?? [];
  if (parameters !== '' && (zone === undefined || timezone === null || !isTimezone(zone)))
    return { problem: 'The only parameters are TZID with an IANA time zone, and VALUE=DATE of whole days.' };
  const walls: number[] = [];
  for (const text of texts) {
    const wall = readTime(text);
    if (wall === null || text.includes('T') !== (timezone !== null))
      return {
        problem: `Not a ${timezone === null ? 'day such as 20261121' : 'time such as 20261121T093000'}: ${text.slice(0, 40)}.`,
      };
    if (!isInYears(text)) return { problem: `Not a time ${IN_YEARS}: ${text}.` };
    const from = text.endsWith('Z') ? 'UTC' : zone;
    walls.push(
      timezone === null || from === undefined || from === timezone ? wall : wallAt(instantOf(wall, from), timezone),
    );
  }
  return { value: walls };
}

/** The lines of a recurrence; the inverse of readRecurrence. */
export function writeRecurrence({ rule, count, until, added, left }: Recurrence, { timezone }: Anchor): string[] {
  const days = timezone === null;
  const end =
    count !== null
      ? `;COUNT=${count}`
      : until === null
        ? ''
        : `;UNTIL=${days ? compactOf(until, true) : `${compactOf(instantOf(until, timezone), false)}Z`}`;
  const dates = (name: string, walls: readonly number[]): string[] =>
    walls.length === 0
      ? []
      : [`${name}${days ? ';VALUE=DATE' : `;TZID=${timezone}`}:${walls.map((wall) => compactOf(wall, days)).join()}`];
  return [...(rule === null ? [] : [`RRULE:${rule}${end}`]), ...dates('RDATE', added), ...dates('EXDATE', left)];
}

const ruleOf = (rule: string, wall: number): RRuleTemporal =>
  new RRuleTemporal({
    rruleString: `DTSTART;TZID=UTC:${compactOf(wall, false)}\nRRULE:${rule}`,
    maxIterations: ITERATIONS_MAX,
    maxCandidateEvaluations: CANDIDATES_MAX,
    cache: false,
  });

/** Times of a rule alone, both ends included. The library counts in UTC, where every local time exists once. */
function between(
  { rule, last }: { readonly rule: string; readonly last: number | null },
  wall: number,
  from: number,
  to: number,
): number[] {
  const end = Math.min(to, last ?? LAST_WALL);
  return end < from ? [] : timesBetween(ruleOf(rule, wall), from, end);
}

const timesBetween = (rule: RRuleTemporal, from: number, to: number): number[] =>
  rule.between(new Date(from), new Date(to), true).map(({ epochMilliseconds }) => epochMilliseconds);

/** Times of a series from `from` up to before `to`, in order. A rule that never comes true again ends at a bound. */
export function timesOf(start: number, recurrence: Recurrence, from: number, to: number): number[] {
  const { rule, last, added, left } = recurrence;
  const inWindow = (wall: number): boolean => wall >= from && wall < to;
  const found = new Set(rule === null ? [] : between({ rule, last }, start, Math.max(start, from), to - 1));
  for (const wall of [start, ...added]) if (inWindow(wall)) found.add(wall);
  for (const wall of left) found.delete(wall);
  return [...found].sort((a, b) => a - b);
}

/** The recurrence up to before `wall`: of it, and of that which is left in another series. */
export function truncated(recurrence: Recurrence, wall: number): Recurrence {
  const { rule, last, until } = recurrence;
  const end = last === null || last >= wall ? wall - 1_000 : until;
  return {
    ...recurrence,
    count: rule !== null && last !== null && last < wall ? recurrence.count : null,
    until: rule === null ? null : end,
    last: rule === null ? null : Math.min(wall - 1_000, last ?? wall),
    added: recurrence.added.filter((one) => one < wall),
    left: recurrence.left.filter((one) => one < wall),
  };
}

/** The recurrence from `wall` on, of a series that begins there. `before`: how many times the rule had until then. */
export function remaining(recurrence: Recurrence, wall: number, before: number): Recurrence {
  const { count } = recurrence;
  return {
    ...recurrence,
    count: count === null ? null : count - before,
    added: recurrence.added.filter((one) => one > wall),
    left: recurrence.left.filter((one) => one >= wall),
  };
}

/** The recurrence of a series that was moved by so many milliseconds. */
export const moved = (recurrence: Recurrence, by: number): Recurrence => ({
  ...recurrence,
  until: recurrence.until === null ? null : recurrence.until + by,
  last: recurrence.last === null ? null : recurrence.last + by,
  added: recurrence.added.map((wall) => wall + by),
  left: recurrence.left.map((wall) => wall + by),
});
