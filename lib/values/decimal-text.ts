/**
 * Exact decimals as text. Numbers of callers never pass through binary floating point: they are stored as they were
 * written, or refused.
 */
import { ExactNumber, NUMBER_MAX_CHARS, withoutTrailingZeros } from '../json/exact-number.ts';

/** `digits × 10^-scale`, negative or not; digits without leading zeros (`0` for zero), scale without trailing zeros. */
export interface Decimal {
  readonly negative: boolean;
  readonly digits: string;
  readonly scale: number;
}

/** More digits than any business value needs; PostgreSQL would accept more, and the texts would be long. */
export const DIGITS_MAX = 200;

const NUMBER = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,6}))?$/;

/** Reads a JSON number, or a string in the grammar of a JSON number; null when it is neither or too long. */
export function readDecimal(value: unknown): Decimal | null {
  let text: string;
  if (typeof value === 'number') text = String(value);
  else if (typeof value === 'string') text = value;
  else if (value instanceof ExactNumber) text = value.text;
  else return null;
  if (text.length > NUMBER_MAX_CHARS) return null;
  const match = NUMBER.exec(text);
  if (!match) return null;
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  let digits = (whole + fraction).replace(/^0+/, '');
  if (digits === '') return { negative: false, digits: '0', scale: 0 };
  let scale = fraction.length - Number(exponent);
  const trailing = digits.length;
  digits = withoutTrailingZeros(digits);
  scale -= trailing - digits.length;
  if (scale < 0) {
    if (digits.length - scale > DIGITS_MAX) return null;
    digits += '0'.repeat(-scale);
    scale = 0;
  }
  if (digits.length > DIGITS_MAX || scale > DIGITS_MAX) return null;
  return { negative: sign === '-', digits, scale };
}

/** Plain digits, such as `-12.5`. */
export function decimalText({ negative, digits, scale }: Decimal): string {
  const padded = digits.padStart(scale + 1, '0');
  const whole = padded.slice(0, padded.length - scale);
  return `${negative ? '-' : ''}${whole}${scale > 0 ? `.${padded.slice(-scale)}` : ''}`;
}

/** Digits before the decimal point. */
export const wholeDigits = ({ digits, scale }: Decimal): number => Math.max(0, digits.length - scale);

/** Negative, zero or positive, as for sort(). */
export function compareDecimals(a: Decimal, b: Decimal): number {
  const scale = Math.max(a.scale, b.scale);
  const left = BigInt(a.digits) * 10n ** BigInt(scale - a.scale) * (a.negative ? -1n : 1n);
  const right = BigInt(b.digits) * 10n ** BigInt(scale - b.scale) * (b.negative ? -1n : 1n);
  return left < right ? -1 : left > right ? 1 : 0;
}
