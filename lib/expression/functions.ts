/**
 * The functions of the language. Each is total: for every value of its types it gives a value or one of the failures
 * that are documented, in a time that its cost bounds. None sees a null. Source:
 * docs/reference/expressions.md#functions.
 */

import { messageOf } from '../errors/thrown.ts';
import { countChars, TEXT_MAX_CHARS } from '../schema/field-types/common.ts';
import { dateOfDay, dayNumber, daysInMonth, isDate, readInstant, readTime } from '../values/calendar.ts';
import type { Exact } from '../values/decimal.ts';
import * as decimal from '../values/decimal.ts';
import { matchesPattern, patternSize } from '../values/pattern.ts';
import { dayAt } from '../values/relative-dates.ts';
import type { FunctionName, Instant, Type, Value } from './types.ts';

export type FailureReason = 'DIVISION_BY_ZERO' | 'VALUE_OUT_OF_RANGE' | 'COST_EXCEEDED' | 'TIME_EXCEEDED';

/** An expression that could not be evaluated; `message` completes "The rule cannot be evaluated: …". */
export class EvaluationError extends Error {
  override readonly name = 'EvaluationError';
  readonly reason: FailureReason;

  constructor(reason: FailureReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Services available to a function while it runs. */
export interface Runtime {
  readonly timezone: string;
  /** Charges for work in proportion to the size of a value; throws COST_EXCEEDED. */
  spend(units: number): void;
}

/** Values of the types of parameters. */
interface Values {
  readonly text: string;
  readonly number: Exact;
  readonly date: string;
  readonly dateTime: Instant;
  readonly anyList: readonly Value[];
}

type Param = keyof Values;
type Arguments<P extends readonly Param[]> = { readonly [I in keyof P]: Values[P[I]] };

export interface Signature<P extends readonly Param[] = readonly Param[]> {
  readonly params: P;
  /** How many of the last parameters may be left out. */
  readonly optional?: number;
  readonly result: Type;
  /**
   * The arguments at these places must be text literals; `problem` says what is wrong with one, null when nothing is.
   */
  readonly literal?: { readonly at: number; readonly problem: (text: string) => string | null };
}

type Conditions = Pick<Signature, 'optional' | 'literal'>;

interface Fn {
  /** Called on a value, `record.name.startsWith("A")`: the value is the first parameter. */
  readonly method: boolean;
  /** The first that fits is taken. */
  readonly signatures: readonly Signature[];
  readonly run: (args: readonly Value[], runtime: Runtime) => Value;
}

/** To find the day of a moment in a time zone takes some 15 µs. */
export const DAY_COST = 10;
const CHARS_PER_UNIT = 100;
/** The clock is not looked at while a text is matched: so many steps that 10,000 units stay well within 50 ms. */
const STEPS_PER_UNIT = 200;
const LAST_DAY = dayNumber('9999-12-31');
const FIRST_DAY = dayNumber('0001-01-01');
const DAY_MS = 86_400_000;

const outOfRange = (message: string): EvaluationError => new EvaluationError('VALUE_OUT_OF_RANGE', message);

const charge = (runtime: Runtime, ...texts: string[]): void => {
  let length = 0;
  for (const item of texts) length += item.length;
  if (length > CHARS_PER_UNIT) runtime.spend(Math.floor(length / CHARS_PER_UNIT));
};

/** Exactly the texts that a field could hold. `units`: its length in UTF-16, known before it is made. */
function boundedText(units: number, make: () => string): string {
  const made = units <= 2 * TEXT_MAX_CHARS ? make() : '';
  if (units > TEXT_MAX_CHARS && (made === '' || countChars(made) > TEXT_MAX_CHARS))
    throw outOfRange(`it makes a text longer than ${TEXT_MAX_CHARS} characters`);
  return made;
}

type Run<P extends readonly Param[]> = (args: Arguments<P>, runtime: Runtime) => Value;

/** A function whose arguments are those of one of its signatures: the check of an expression sees to it. */
const overloaded = <const P extends readonly Param[]>(
  method: boolean,
  signatures: readonly Signature<P>[],
  run: Run<P>,
): Fn => ({ method, signatures, run: run as Fn['run'] });

const method = <const P extends readonly Param[]>(params: P, result: Type, run: Run<P>, more: Conditions = {}): Fn =>
  overloaded(true, [{ ...more, params, result }], run);

const plain = <const P extends readonly Param[]>(params: P, result: Type, run: Run<P>, more: Conditions = {}): Fn =>
  overloaded(false, [{ ...more, params, result }], run);

const contentOf = (work: (value: string, part: string) => boolean): Fn =>
  method(['text', 'text'], 'boolean', ([value, part], runtime) => {
    charge(runtime, value, part);
    return work(value, part);
  });

const arithmetic = (work: (a: Exact, b: Exact) => Exact): Fn =>
  plain(['number', 'number'], 'number', ([a, b], runtime) => {
    // Numbers of business fit in one unit; those that grow by multiplication cost more.
    const digits = a.scale + b.scale;
    if (digits > 40) runtime.spend(Math.floor(digits / 40));
    return digitsKept(() => work(a, b));
  });

function digitsKept(work: () => Exact): Exact {
  try {
    return work();
  } catch (error) {
    if (error instanceof decimal.DigitsError) throw outOfRange('a number has more than 200 digits');
    throw error;
  }
}

function notZero(divisor: Exact): Exact {
  if (divisor.units === 0n) throw new EvaluationError('DIVISION_BY_ZERO', 'it divides by zero');
  return divisor;
}

function wholeNumber(value: Exact, most: number): number {
  const found = decimal.integerOf(value);
  if (found === null || Math.abs(found) > most)
    throw outOfRange(`it needs a whole number between -${most} and ${most} where there is ${decimal.exactText(value)}`);
  return found;
}

function day(at: number): string {
  if (at < FIRST_DAY || at > LAST_DAY) throw outOfRange('a date lies outside the years 0001 to 9999');
  return dateOfDay(at);
}

function addMonths(date: string, months: number): string {
  const [year = 0, month = 0, dayOfMonth = 0] = date.split('-').map(Number);
  const count = year * 12 + (month - 1) + months;
  const [y, m] = [Math.floor(count / 12), (((count % 12) + 12) % 12) + 1];
  if (y < 1 || y > 9999) throw outOfRange('a date lies outside the years 0001 to 9999');
  const last = daysInMonth(y, m);
  return `${String(y).padStart(4, '0')}-${String(m).padStart(2, '0')}-${String(Math.min(dayOfMonth, last)).padStart(2, '0')}`;
}

const partOfDate = (work: (date: string) => number): Fn =>
  plain(['date'], 'number', ([date]) => decimal.whole(work(date)));

const literal = (problem: (value: string) => string | null): Conditions => ({ literal: { at: 0, problem } });

const DAYS_MAX = 4_000_000;
const MONTHS_MAX = 120_000;

/** By name; a method and a plain function may not share one, but for `size`. */
export const FUNCTIONS: Readonly<Record<FunctionName, Fn>> = {
  contains: contentOf((value, part) => value.includes(part)),
  startsWith: contentOf((value, part) => value.startsWith(part)),
  endsWith: contentOf((value, part) => value.endsWith(part)),
  matches: method(
    ['text', 'text'],
    'boolean',
    ([value, pattern], runtime) => {
      runtime.spend(Math.ceil((value.length * patternSize(pattern)) / STEPS_PER_UNIT));
      return matchesPattern(pattern, value);
    },
    {
      literal: {
        at: 1,
        problem(pattern) {
          try {
            patternSize(pattern);
            return null;
          } catch (error) {
            return messageOf(error);
          }
        },
      },
    },
  ),
  lower: method(['text'], 'text', ([value], runtime) => {
    // Else a sigma would become another letter at the end of a word, and where words end changes with each Unicode.
    const made = value.replaceAll('Σ', 'σ').toLowerCase();
    charge(runtime, value, made);
    return made;
  }),
  upper: method(['text'], 'text', ([value], runtime) => {
    const made = value.toUpperCase();
    // A letter can become three.
    charge(runtime, value, made);
    return made;
  }),
  trim: method(['text'], 'text', ([value], runtime) => {
    charge(runtime, value);
    return value.trim();
  }),
  replace: method(['text', 'text', 'text'], 'text', ([value, from, to], runtime) => {
    charge(runtime, value, from, to);
    if (from === '') return value;
    const parts = value.split(from);
    const length = value.length + (parts.length - 1) * (to.length - from.length);
    runtime.spend(parts.length / CHARS_PER_UNIT);
    return boundedText(length, () => parts.join(to));
  }),
  substring: method(
    ['text', 'number', 'number'],
    'text',
    ([value, from, to]: readonly [string, Exact, Exact?], runtime) => {
      charge(runtime, value);
      const chars = [...value];
      const end = to === undefined ? chars.length : wholeNumber(to, TEXT_MAX_CHARS);
      return chars.slice(Math.max(0, wholeNumber(from, TEXT_MAX_CHARS)), Math.max(0, end)).join('');
    },
    { optional: 1 },
  ),
  size: overloaded(
    true,
    [
      { params: ['text'], result: 'number' },
      { params: ['anyList'], result: 'number' },
    ],
    ([value], runtime) => {
      if (typeof value !== 'string') return decimal.whole(value.length);
      charge(runtime, value);
      return decimal.whole(countChars(value));
    },
  ),
  join: plain(['text', 'text'], 'text', ([a, b], runtime) => {
    charge(runtime, a, b);
    return boundedText(a.length + b.length, () => a + b);
  }),

  add: arithmetic(decimal.add),
  subtract: arithmetic(decimal.subtract),
  multiply: arithmetic(decimal.multiply),
  divide: arithmetic((a, b) => decimal.divide(a, notZero(b))),
  remainder: arithmetic((a, b) => decimal.remainder(a, notZero(b))),
  negate: plain(['number'], 'number', ([a]) => decimal.negate(a)),
  abs: plain(['number'], 'number', ([a]) => (a.units < 0n ? decimal.negate(a) : a)),
  floor: plain(['number'], 'number', ([a]) => decimal.floor(a)),
  ceil: plain(['number'], 'number', ([a]) => decimal.ceil(a)),
  round: plain(
    ['number', 'number'],
    'number',
    ([a, digits]: readonly [Exact, Exact?]) =>
      digitsKept(() => decimal.round(a, digits === undefined ? 0 : wholeNumber(digits, 100))),
    { optional: 1 },
  ),
  min: plain(['number', 'number'], 'number', ([a, b]) => (decimal.compare(a, b) <= 0 ? a : b)),
  max: plain(['number', 'number'], 'number', ([a, b]) => (decimal.compare(a, b) >= 0 ? a : b)),

  date: overloaded(
    false,
    [
      {
        params: ['text'],
        result: 'date',
        ...literal((value) => (isDate(value) ? null : 'It is no day of the calendar such as 2026-11-21.')),
      },
      { params: ['dateTime'], result: 'date' },
    ],
    ([value], runtime) => {
      if (typeof value === 'string') return value;
      runtime.spend(DAY_COST);
      return dayOf(value.ms, runtime.timezone);
    },
  ),
  dateTime: plain(
    ['text'],
    'dateTime',
    ([value]) => {
      const ms = readInstant(value);
      return ms === null ? null : { ms };
    },
    literal((value) =>
      readInstant(value) === null ? 'It is no date-time with offset such as 2026-11-21T09:30:00Z.' : null,
    ),
  ),
  time: plain(
    ['text'],
    'time',
    ([value]) => readTime(value),
    literal((value) => (readTime(value) === null ? 'It is no time of day such as 09:30.' : null)),
  ),
  addDays: overloaded(
    false,
    [
      { params: ['date', 'number'], result: 'date' },
      { params: ['dateTime', 'number'], result: 'dateTime' },
    ],
    ([value, days]) => {
      const count = wholeNumber(days, DAYS_MAX);
      if (typeof value === 'string') return day(dayNumber(value) + count);
      const ms = value.ms + count * DAY_MS;
      day(Math.floor(ms / DAY_MS));
      return { ms };
    },
  ),
  addMonths: plain(['date', 'number'], 'date', ([date, months]) => addMonths(date, wholeNumber(months, MONTHS_MAX))),
  daysBetween: plain(['date', 'date'], 'number', ([from, to]) => decimal.whole(dayNumber(to) - dayNumber(from))),
  year: partOfDate((date) => Number(date.slice(0, 4))),
  month: partOfDate((date) => Number(date.slice(5, 7))),
  day: partOfDate((date) => Number(date.slice(8, 10))),
  // Day 0 was a Thursday.
  weekday: partOfDate((date) => ((((dayNumber(date) + 3) % 7) + 7) % 7) + 1),
};

export const isFunction = (name: string): name is FunctionName => Object.hasOwn(FUNCTIONS, name);

/** Functions that only operators stand for. */
export const OPERATORS_ONLY: ReadonlySet<FunctionName> = new Set([
  'join',
  'add',
  'subtract',
  'multiply',
  'divide',
  'remainder',
  'negate',
]);

/** The day that a moment belongs to in a time zone. */
export function dayOf(ms: number, timezone: string): string {
  return day(dayAt(ms, timezone));
}
