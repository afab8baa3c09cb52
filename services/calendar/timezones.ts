/** A time zone as an iCalendar file has it (RFC 5545, VTIMEZONE). Pure. */
import { Temporal } from 'temporal-polyfill';
import { compactOf } from './recurrence/rule.ts';
import { DAY_MS, wallAt } from './recurrence/times.ts';

/** Years of changes of the clock that a file looks at, before and after now. */
const YEARS = 5;
/** Years for which a rule has to be true. The rules that zones have today have no end; all dates occur within 28 years. */
const RULE_YEARS = 30;
const HOUR_MS = 3_600_000;
const WEEKDAYS = ['SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA'] as const;

/** A change of the clock. */
interface Onset {
  /** Local time by the offset before it, as wall (times.ts). */
  readonly wall: number;
  /** Offsets from UTC before and after it, in milliseconds. */
  readonly from: number;
  readonly to: number;
}

/** Changes on the one weekday among seven days of a month, each year. */
interface Rule {
  readonly month: number;
  readonly weekday: number;
  /** The first of the seven days; null: they are the last ones of the month. */
  readonly firstDay: number | null;
  /** Since midnight. */
  readonly time: number;
}

/**
 * The zone with the changes of its clock from some years ago on. They go on for ever where the zone changes its clock by a rule,
 * and end some years from now where it does not, such as by the moon. Programs that know IANA zones go by the name.
 */
export function timezoneLines(zone: string, now: number): string[] {
  if (zone === 'UTC') return [];
  const span = YEARS * 366 * DAY_MS;
  const first = wallAt(now - span, zone) - (now - span);
  const onsets = onsetsOf(zone, now - span, now + span);
  const rules = rulesOf(zone, onsets, now);
  // Earlier changes are by the rules too, unless the zone had others then.
  let begin = onsets.length;
  while (begin > 0 && rules.some((rule) => isBy(rule, onsets[begin - 1]))) begin--;
  const ruled = rules.flatMap((rule) => {
    const since = onsets.slice(begin).find((onset) => isBy(rule, onset));
    return since ? observance(kindOf(since), compactOf(since.wall, false), since.from, since.to, ruleText(rule)) : [];
  });
  return [
    'BEGIN:VTIMEZONE',
    `TZID:${zone}`,
    ...observance('STANDARD', '19700101T000000', first, first),
    ...onsets
      .slice(0, begin)
      .flatMap((onset) => observance(kindOf(onset), compactOf(onset.wall, false), onset.from, onset.to)),
    ...ruled,
    'END:VTIMEZONE',
  ];
}

const kindOf = ({ from, to }: Pick<Onset, 'from' | 'to'>): string => (to > from ? 'DAYLIGHT' : 'STANDARD');

function onsetsOf(zone: string, begin: number, end: number): Onset[] {
  const onsets: Onset[] = [];
  let at = Temporal.Instant.fromEpochMilliseconds(begin).toZonedDateTimeISO(zone);
  for (let next = at.getTimeZoneTransition('next'); next; next = next.getTimeZoneTransition('next')) {
    if (next.epochMilliseconds > end) break;
    const [from, to] = [at.offsetNanoseconds / 1_000_000, next.offsetNanoseconds / 1_000_000];
    onsets.push({ wall: next.epochMilliseconds + from, from, to });
    at = next;
  }
  return onsets;
}

type OnsetRule = Rule & Pick<Onset, 'from' | 'to'>;

/** The two rules by which the clock is changed from now on; none: there are no such rules. */
function rulesOf(zone: string, onsets: readonly Onset[], now: number): readonly OnsetRule[] {
  const coming = onsets.filter(({ wall, from }) => wall - from > now);
  const kinds = ['DAYLIGHT', 'STANDARD'].map((kind) => coming.filter((onset) => kindOf(onset) === kind));
  // Two a year, so that each begins where the other ends.
  if (kinds.some(({ length }) => length < YEARS - 1) || coming.length > 2 * YEARS + 1) return [];
  const rules = kinds.map((same) => ruleOf(zone, same, now));
  return rules.every((rule) => rule !== null) ? rules : [];
}

function ruleOf(zone: string, [first, ...others]: readonly Onset[], now: number): OnsetRule | null {
  if (!first) return null;
  const days = [first, ...others].map(({ wall }) => new Date(wall).getUTCDate());
  const [least, most] = [Math.min(...days), Math.max(...days)];
  const starts = Array.from({ length: 7 }, (_, n) => most - 6 + n).filter((day) => day >= 1 && day <= least);
  // A weekday by its number in the month is what programs know best, and the last one.
  const inOrder = [null, ...starts.filter((day) => day % 7 === 1), ...starts.filter((day) => day % 7 !== 1)];
  const date = new Date(first.wall);
  const { from, to } = first;
  const same = { month: date.getUTCMonth(), weekday: date.getUTCDay(), time: first.wall % DAY_MS, from, to };
  const year = new Date(now).getUTCFullYear() + 1;
  const found = inOrder.find((firstDay) => {
    const rule = { ...same, firstDay };
    return (
      [first, ...others].every((onset) => isBy(rule, onset)) &&
      Array.from({ length: RULE_YEARS }, (_, n) => wallIn(rule, year + n)).every((wall) => changes(zone, wall, rule))
    );
  });
  return found === undefined ? null : { ...same, firstDay: found };
}

/** The clock of the zone is changed at this time. */
function changes(zone: string, wall: number, { from, to }: Pick<Onset, 'from' | 'to'>): boolean {
  const instant = wall - from;
  // No zone has two changes so close to each other.
  return wallAt(instant - HOUR_MS, zone) === instant - HOUR_MS + from && wallAt(instant, zone) === instant + to;
}

const isBy = (rule: OnsetRule, onset: Onset | undefined): boolean =>
  onset !== undefined &&
  onset.from === rule.from &&
  onset.to === rule.to &&
  onset.wall === wallIn(rule, new Date(onset.wall).getUTCFullYear());

function wallIn({ month, weekday, firstDay, time }: Rule, year: number): number {
  const begin = firstDay === null ? Date.UTC(year, month + 1, -6) : Date.UTC(year, month, firstDay);
  return begin + ((weekday - new Date(begin).getUTCDay() + 7) % 7) * DAY_MS + time;
}

function ruleText({ month, weekday, firstDay }: Rule): string {
  const name = WEEKDAYS[weekday];
  const rule = `RRULE:FREQ=YEARLY;BYMONTH=${month + 1}`;
  if (firstDay === null) return `${rule};BYDAY=-1${name}`;
  if (firstDay % 7 === 1) return `${rule};BYDAY=${(firstDay + 6) / 7}${name}`;
  return `${rule};BYMONTHDAY=${Array.from({ length: 7 }, (_, n) => firstDay + n)};BYDAY=${name}`;
}

const observance = (kind: string, start: string, from: number, to: number, ...rule: string[]): string[] => [
  `BEGIN:${kind}`,
  `DTSTART:${start}`,
  `TZOFFSETFROM:${offsetText(from)}`,
  `TZOFFSETTO:${offsetText(to)}`,
  ...rule,
  `END:${kind}`,
];

function offsetText(milliseconds: number): string {
  const minutes = Math.abs(milliseconds) / 60_000;
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  return `${milliseconds < 0 ? '-' : '+'}${two(minutes / 60)}${two(minutes % 60)}`;
}
