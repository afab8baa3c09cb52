/** Values as people of a place write them: numbers, money, days and buckets of time. */

import { common } from './words.js';

/** @import { Column, Granularity, Place } from './types.d.ts' */

/** @type {Map<string, Intl.NumberFormat | Intl.DateTimeFormat>} */
const formats = new Map();

/**
 * Making one costs more than using it.
 * @template {Intl.NumberFormat | Intl.DateTimeFormat} Format
 * @param {string} key
 * @param {() => Format} make
 * @returns {Format}
 */
export function remembered(key, make) {
  const known = /** @type {Format | undefined} */ (formats.get(key));
  if (known) return known;
  const made = make();
  formats.set(key, made);
  return made;
}

/**
 * The locale of the person when browsers know it, else that of the browser.
 * @param {string} locale
 * @returns {string | undefined}
 */
export function knownLocale(locale) {
  try {
    return Intl.getCanonicalLocales(locale)[0];
  } catch {
    return undefined;
  }
}

/**
 * @param {string} timezone
 * @returns {string} the time zone when browsers know it, else UTC
 */
export function knownTimezone(timezone) {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: timezone }).resolvedOptions().timeZone;
  } catch {
    return 'UTC';
  }
}

/**
 * A number as JSON has it: decimals arrive as numbers or as texts.
 * @param {unknown} value
 * @returns {number | null}
 */
export function numeric(value) {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value !== 'string' || value.trim() === '') return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

/**
 * @param {number} value
 * @param {Column} column
 * @param {Place} place
 * @param {{ short?: boolean }} [options] short: for an axis or a large figure
 */
export function number(value, { fieldType, currency }, { locale }, { short = false } = {}) {
  const unit = fieldType === 'percent' ? 'percent' : (currency ?? '');
  const key = `number ${locale} ${unit} ${short}`;
  const format = remembered(key, () => {
    /** @type {Intl.NumberFormatOptions} */
    const options = short ? { notation: 'compact', maximumFractionDigits: 1 } : { maximumFractionDigits: 2 };
    if (/^[A-Z]{3}$/.test(unit)) Object.assign(options, { style: 'currency', currency: unit });
    // Money has the decimals of its currency.
    if (currency && !short) delete options.maximumFractionDigits;
    return new Intl.NumberFormat(locale, options);
  });
  const text = format.format(value);
  return unit === 'percent' ? `${text} %` : text;
}

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/;

/**
 * The name of a bucket of time, of which the API gives the first day.
 * @param {string} date
 * @param {Granularity} granularity
 * @param {string} locale
 */
function bucket(date, granularity, locale) {
  const day = new Date(`${date}T00:00:00Z`);
  const year = day.getUTCFullYear();
  /** @param {Intl.DateTimeFormatOptions} options */
  const format = (options) =>
    remembered(
      `bucket ${locale} ${granularity}`,
      () => new Intl.DateTimeFormat(locale, { ...options, timeZone: 'UTC' }),
    );
  if (granularity === 'year') return String(year);
  if (granularity === 'quarter') return `Q${Math.floor(day.getUTCMonth() / 3) + 1} ${year}`;
  if (granularity === 'month') return format({ month: 'short', year: 'numeric' }).format(day);
  const text = format({ dateStyle: 'medium' }).format(day);
  return granularity === 'week' ? common('weekOf')(text) : text;
}

/**
 * @param {unknown} value
 * @param {Column} column
 * @param {Place} place
 * @param {Granularity | undefined} [granularity]
 * @returns {string}
 */
export function text(value, column, place, granularity) {
  if (value === null || value === undefined || value === '') return '–';
  if (typeof value === 'boolean') return common(value ? 'yes' : 'no');
  if (Array.isArray(value)) return value.map((one) => text(one, column, place)).join(', ');
  if (typeof value === 'object') return JSON.stringify(value);
  if (column.role === 'measure' || NUMBERS.has(column.fieldType)) {
    const figure = numeric(value);
    if (figure !== null) return number(figure, column, place);
  }
  const written = String(value);
  if (DATE.test(written)) return bucket(written, granularity ?? 'day', place.locale);
  return DATE_TIME.test(written) && column.fieldType === 'dateTime' ? moment(written, place) : written;
}

const NUMBERS = new Set(['integer', 'decimal', 'currency', 'percent']);

/**
 * @param {string} at a point in time
 * @param {Place} place
 * @param {'short' | 'medium'} [timeStyle] medium: with seconds
 */
export function moment(at, { locale, timezone }, timeStyle = 'short') {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  return remembered(
    `moment ${locale} ${timezone} ${timeStyle}`,
    () => new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle, timeZone: timezone }),
  ).format(date);
}

/**
 * Offset of the time zone from UTC at a moment, in milliseconds.
 * @param {number} at
 * @param {string} timezone
 */
function ahead(at, timezone) {
  const parts = remembered(
    `clock ${timezone}`,
    () =>
      new Intl.DateTimeFormat('en-US-u-ca-gregory-nu-latn', {
        ...{ timeZone: timezone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric' },
        ...{ hour: 'numeric', minute: 'numeric', second: 'numeric' },
      }),
  ).formatToParts(at);
  /** @param {string} type */
  const part = (type) => Number(parts.find((one) => one.type === type)?.value);
  return Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second')) - at;
}

/**
 * @param {string} time of the clocks there, such as 2026-11-22T09:30
 * @param {string} timezone
 * @returns {number} in milliseconds of Unix time
 */
function clockTime(time, timezone) {
  const utc = Date.parse(`${time}Z`);
  // When clocks change in between, the second pass is right.
  const near = utc - ahead(utc, timezone);
  return utc - ahead(near, timezone);
}

/**
 * @param {string} time of the clocks there, such as 2026-11-22T09:30
 * @param {string} timezone
 */
export const fromClock = (time, timezone) => new Date(clockTime(time, timezone)).toISOString();

/**
 * The time of the clocks there, to the minute, such as 2026-11-22T09:30.
 * @param {string} at
 * @param {string} timezone
 */
export function onClock(at, timezone) {
  const utc = Date.parse(at);
  return new Date(utc + Math.round(ahead(utc, timezone) / 60_000) * 60_000).toISOString().slice(0, 16);
}

/**
 * @param {string} day
 * @param {string} timezone
 */
export const dayStart = (day, timezone) => fromClock(`${day}T00:00`, timezone);

/**
 * @param {string} day
 * @param {string} timezone
 */
export function dayEnd(day, timezone) {
  const next = new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10);
  return new Date(clockTime(`${next}T00:00`, timezone) - 1).toISOString();
}
