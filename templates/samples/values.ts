/** Moments, amounts and texts of sample records. */
import type { Choices } from './random.ts';

export const DAY = 86_400_000;
export const HOUR = 3_600_000;
/**
 * The day on which the sample company stands still when it is made at that moment: the beginning (UTC) of the last Sunday.
 * So records of two weeks differ in nothing but dates, and what falls on a working day does so in both.
 */
export function lastSunday(at: number): number {
  const day = Math.floor(at / DAY);
  return (day - ((day + 4) % 7)) * DAY;
}

/** German value-added tax in percent. */
export const VAT_RATE = 19;

export function digits(random: Choices, count: number): string {
  let text = '';
  for (let i = 0; i < count; i++) text += random.integer(i === 0 ? 1 : 0, 9);
  return text;
}

export const slug = (text: string): string =>
  text
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .replaceAll('ß', 'ss')
    .replaceAll('ø', 'o')
    .replaceAll('ł', 'l')
    .replaceAll('æ', 'ae')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');

/** A moment between 7 and 17 o'clock UTC on that day, or on the Monday after a weekend. */
export function workingMoment(random: Choices, at: number): number {
  const day = Math.floor(at / DAY);
  const weekday = (day + 4) % 7;
  const shift = weekday === 6 ? 2 : weekday === 0 ? 1 : 0;
  return (day + shift) * DAY + random.integer(7 * HOUR, 17 * HOUR);
}

/** A working moment between a day after `from` and the end; `from` when there is none. */
export function later(random: Choices, from: number, end: number): number {
  const days = Math.floor((end - from) / DAY) - 3;
  return days < 1 ? from : workingMoment(random, from + random.integer(1, days) * DAY);
}

export const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0);

export const round = (value: number, places: number): number => Math.round(value * 10 ** places) / 10 ** places;

export const isoDate = (at: number): string => new Date(at).toISOString().slice(0, 10);

export const isoTime = (at: number): string => new Date(at).toISOString();

export const numbered = (prefix: string, number: number, width: number): string =>
  prefix + String(number).padStart(width, '0');

export const money = (cents: number): string => decimal(cents, 100, 2);

/** `units` of which `per` make one, as decimal text with `scale` places, such as decimal(-1205, 100, 2) = "-12.05". */
export function decimal(units: number, per: number, scale: number): string {
  const whole = Math.floor(Math.abs(units) / per);
  const rest = String(Math.abs(units) % per).padStart(scale, '0');
  return `${units < 0 ? '-' : ''}${whole}.${rest}`;
}
