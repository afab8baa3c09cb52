/**
 * Arithmetic on exact decimals without binary floating point. Sums, differences and products are exact; a quotient is
 * rounded to 20 decimal places.
 * Source: docs/reference/expressions.md#numbers.
 */
import { withoutTrailingZeros } from '../json/exact-number.ts';
import { DIGITS_MAX, decimalText, readDecimal } from './decimal-text.ts';

/** `units × 10^-scale`; scale is never negative. */
export interface Exact {
  readonly units: bigint;
  readonly scale: number;
}

/** Decimal places of a quotient that does not terminate. */
export const QUOTIENT_SCALE = 20;
const UNITS_MAX = 10n ** BigInt(DIGITS_MAX);

/** A result has more digits than can be kept. */
export class DigitsError extends Error {
  override readonly name = 'DigitsError';
}

/** A JSON number, or a string in the grammar of one; null when it is neither. */
export function exactOf(value: unknown): Exact | null {
  const read = readDecimal(value);
  if (!read) return null;
  return { units: BigInt(read.digits) * (read.negative ? -1n : 1n), scale: read.scale };
}

/** Plain digits without trailing zeros, such as `-12.5`. */
export function exactText({ units, scale }: Exact): string {
  const text = decimalText({ negative: units < 0n, digits: String(units < 0n ? -units : units), scale });
  if (!text.includes('.')) return text;
  const kept = withoutTrailingZeros(text);
  return kept.endsWith('.') ? kept.slice(0, -1) : kept;
}

export const whole = (value: number | bigint): Exact => ({ units: BigInt(value), scale: 0 });

const power = (scale: number): bigint => 10n ** BigInt(scale);

function bounded(units: bigint, scale: number): Exact {
  let [kept, digits] = [units, scale];
  if (digits > 0 && kept % 10n === 0n) {
    // Counted as text: a division for each zero would take a hundred times as long as the product that has them.
    const text = String(kept);
    const zeros = kept === 0n ? digits : Math.min(digits, text.length - withoutTrailingZeros(text).length);
    kept /= power(zeros);
    digits -= zeros;
  }
  if (kept >= UNITS_MAX || kept <= -UNITS_MAX || digits > DIGITS_MAX)
    throw new DigitsError(`A number has more than ${DIGITS_MAX} digits.`);
  return { units: kept, scale: digits };
}

function aligned(a: Exact, b: Exact): [bigint, bigint, number] {
  const scale = Math.max(a.scale, b.scale);
  return [a.units * power(scale - a.scale), b.units * power(scale - b.scale), scale];
}

export function add(a: Exact, b: Exact): Exact {
  const [x, y, scale] = aligned(a, b);
  return bounded(x + y, scale);
}

export const negate = (a: Exact): Exact => ({ units: -a.units, scale: a.scale });
export const subtract = (a: Exact, b: Exact): Exact => add(a, negate(b));
export const multiply = (a: Exact, b: Exact): Exact => bounded(a.units * b.units, a.scale + b.scale);

/** Rounded half away from zero. `b` is not zero. */
export function divide(a: Exact, b: Exact): Exact {
  const [x, y] = aligned(a, b);
  return bounded(quotient(x * power(QUOTIENT_SCALE), y), QUOTIENT_SCALE);
}

/** With the sign of `a`, as in SQL. `b` is not zero. */
export function remainder(a: Exact, b: Exact): Exact {
  const [x, y, scale] = aligned(a, b);
  return bounded(x % y, scale);
}

function quotient(a: bigint, b: bigint): bigint {
  const negative = a < 0n !== b < 0n;
  const [x, y] = [a < 0n ? -a : a, b < 0n ? -b : b];
  const rounded = (2n * x + y) / (2n * y);
  return negative ? -rounded : rounded;
}

/** Negative, zero or positive, as for sort(). */
export function compare(a: Exact, b: Exact): number {
  const [x, y] = aligned(a, b);
  return x < y ? -1 : x > y ? 1 : 0;
}

/** To `digits` after the point (before it, when negative), half away from zero. */
export function round(a: Exact, digits: number): Exact {
  if (digits >= a.scale) return a;
  const rounded = quotient(a.units, power(a.scale - digits));
  return digits >= 0 ? bounded(rounded, digits) : bounded(rounded * power(-digits), 0);
}

export function floor(a: Exact): Exact {
  const unit = power(a.scale);
  const cut = a.units / unit;
  return whole(cut * unit > a.units ? cut - 1n : cut);
}

export const ceil = (a: Exact): Exact => negate(floor(negate(a)));

/** The number as an integer that a double holds exactly; null when it is none. */
export function integerOf(a: Exact): number | null {
  const unit = power(a.scale);
  if (a.units % unit !== 0n) return null;
  const number = Number(a.units / unit);
  return Number.isSafeInteger(number) ? number : null;
}
