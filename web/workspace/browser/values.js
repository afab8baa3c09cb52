/** Values of fields as people read them. */
import { element, foreign } from '../../shared/elements.js';
import { moment, numeric, remembered, text } from '../../shared/format.js';
import { addressOf, isReference } from './objects.js';
import { say } from './words.js';

/** @import { Person } from '../../shared/types.d.ts' */
/** @import { Field, RecordData, Values } from './types.d.ts' */

const NUMBERS = new Set(['integer', 'decimal', 'currency', 'percent']);
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/;

/**
 * Whether its values stand below each other by their digits. A formula does not say its type: what can be added up is a
 * number.
 * @param {Field} field
 */
export const isNumber = ({ fieldType, aggregations }) =>
  NUMBERS.has(fieldType) || ((fieldType === 'formula' || fieldType === 'rollup') && aggregations.includes('sum'));

/** @param {Field} field */
export const isMoney = ({ fieldType, currencyField }) => fieldType === 'currency' || currencyField !== null;

/**
 * A number with all its digits: those of a text are not rounded.
 * @param {unknown} value
 * @param {Field} field
 * @param {string | null} currency
 * @param {Person} person
 */
function figure(value, { fieldType, scale }, currency, { locale }) {
  const money = currency !== null && /^[A-Z]{3}$/.test(currency);
  const digits = money ? (scale ?? 2) : 0;
  const format = remembered(`figure ${locale} ${money ? currency : ''} ${digits} ${scale}`, () => {
    /** @type {Intl.NumberFormatOptions} */
    const options = { minimumFractionDigits: digits, maximumFractionDigits: scale ?? 6 };
    return new Intl.NumberFormat(locale, money ? { ...options, style: 'currency', currency } : options);
  });
  const written = format.format(/** @type {number} */ (/** @type {unknown} */ (String(value))));
  return fieldType === 'percent' ? `${written} %` : written;
}

/**
 * @param {unknown} value
 * @param {Field} field
 * @param {Person} person
 * @param {Values} [record] knows the currency of an amount
 * @returns {string} empty: there is no value
 */
export function written(value, field, person, record = {}) {
  if (value === null || value === undefined || value === '') return '';
  const { fieldType, picklistValues, currencyField } = field;
  if (typeof value === 'boolean') return say(value ? 'yes' : 'no');
  if (Array.isArray(value)) return value.map((one) => written(one, field, person, record)).join(', ');
  if (picklistValues) return picklistValues.find((known) => known.value === value)?.label ?? String(value);
  if (isNumber(field) && numeric(value) !== null) {
    const currency = currencyField ? record[currencyField] : person.currency;
    return figure(value, field, isMoney(field) ? String(currency ?? '') : null, person);
  }
  if (typeof value === 'object') return composed(/** @type {Values} */ (value), fieldType);
  const plain = String(value);
  if (fieldType === 'richText') return withoutTags(plain);
  if (fieldType === 'duration') return duration(plain, person.locale);
  if (DATE.test(plain)) return text(plain, { ...COLUMN, fieldType: 'date' }, person);
  if (DATE_TIME.test(plain) && (fieldType === 'dateTime' || fieldType === 'formula')) return moment(plain, person);
  if (fieldType === 'time') return plain.slice(0, 5);
  return plain;
}

const COLUMN = /** @type {const} */ ({ key: '', label: '', role: 'dimension', currency: null });

/**
 * @param {Values} value
 * @param {string} fieldType
 */
function composed(value, fieldType) {
  if (fieldType === 'geolocation') return `${value['latitude']}, ${value['longitude']}`;
  if (fieldType !== 'address') return JSON.stringify(value);
  const { street, postalCode, city, state, country } = value;
  const place = [postalCode, city].filter(Boolean).join(' ');
  return [street, place, state, country].filter(Boolean).join(', ');
}

/** Rich text is shown as text: its markup belongs to others. @param {string} html */
const withoutTags = (html) =>
  html
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll('&nbsp;', ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
    .replaceAll(/[ \t]+/g, ' ')
    .trim();

/**
 * @param {string} value such as P3DT2H
 * @param {string} locale
 */
function duration(value, locale) {
  const [date = '', time = ''] = value.slice(1).split('T');
  /** @type {[unit: string, amount: string | undefined][]} */
  const parts = [
    ['year', /(\d+)Y/.exec(date)?.[1]],
    ['month', /(\d+)M/.exec(date)?.[1]],
    ['day', /(\d+)D/.exec(date)?.[1]],
    ['hour', /(\d+)H/.exec(time)?.[1]],
    ['minute', /(\d+)M/.exec(time)?.[1]],
    ['second', /([\d.]+)S/.exec(time)?.[1]],
  ];
  const named = parts.flatMap(([unit, amount]) =>
    amount === undefined || Number(amount) === 0
      ? []
      : [new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay: 'long' }).format(Number(amount))],
  );
  return named.join(' ') || value;
}

/**
 * A value as an element: a link where it leads somewhere.
 * @param {RecordData} record
 * @param {Field} field
 * @param {Person} person
 * @returns {Node}
 */
export function shown(record, field, person) {
  const value = record[field.apiName];
  if (value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0))
    return element('span', { class: 'nothing', 'aria-label': say('empty') }, '–');
  if (isReference(field)) return reference(record, field, String(value));
  const words = written(value, field, person, record);
  if (field.stateField) return element('span', { class: 'badge' }, foreign(words));
  const link = linkOf(field.fieldType, String(value));
  return link ? element('a', { href: link, rel: 'noreferrer' }, foreign(words)) : foreign(words);
}

/**
 * @param {RecordData} record
 * @param {Field} field
 * @param {string} id
 */
function reference(record, { apiName, referenceTo }, id) {
  const found = record._expanded?.[apiName];
  if (found === null) return element('span', { class: 'nothing' }, say('notVisible'));
  return element('a', { href: addressOf(referenceTo[0] ?? '', id) }, foreign(found?.name ?? id));
}

/**
 * @param {string} fieldType
 * @param {string} value
 */
function linkOf(fieldType, value) {
  if (fieldType === 'email') return `mailto:${encodeURIComponent(value).replace('%40', '@')}`;
  if (fieldType === 'phone') return `tel:${value.replaceAll(/[^\d+]/g, '')}`;
  return fieldType === 'url' && /^https?:\/\//i.test(value) ? value : null;
}

/**
 * The name of a record, for headings and titles.
 * @param {RecordData} record
 */
export const nameOf = ({ name, id }) => (name === null || name === undefined || name === '' ? id : String(name));
