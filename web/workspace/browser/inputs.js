/** Controls in which the values of fields are entered. */
import { element, fill } from '../../shared/elements.js';
import { fromClock, onClock } from '../../shared/format.js';
import { lookup } from './lookup.js';
import { isReference } from './objects.js';
import { isNumber } from './values.js';
import { say } from './words.js';

/** @import { Person } from '../../shared/types.d.ts' */
/** @import { Field, Input, Values } from './types.d.ts' */

const LONG = new Set(['longText', 'richText', 'json']);
/** What is written by other means than a form. */
const NOT_ENTERED = new Set(['file', 'formula', 'rollup', 'autoNumber', 'id']);
/** @type {Record<string, Record<string, string>>} */
const ATTRIBUTES = {
  email: { type: 'email', autocomplete: 'off' },
  phone: { type: 'tel', autocomplete: 'off' },
  url: { type: 'url', autocomplete: 'off' },
  date: { type: 'date' },
  time: { type: 'time', step: '1' },
  dateTime: { type: 'datetime-local' },
};

/** A value that cannot be sent as it stands. */
export class Unreadable extends Error {}

/** @param {Field} field */
export const isEntered = ({ fieldType }) => !NOT_ENTERED.has(fieldType);

/**
 * @param {Field} field
 * @param {Person} person
 * @param {string} id of the control
 * @returns {Input}
 */
export function inputOf(field, person, id) {
  const { fieldType, picklistValues, referenceTo } = field;
  if (isReference(field)) return lookup(referenceTo[0] ?? '', id);
  if (fieldType === 'multiPicklist') return boxes(field, id);
  if (picklistValues) return choice(field, id);
  if (fieldType === 'boolean') return checkbox(id);
  if (fieldType === 'address') return composite(id, say('address'), { text: true });
  if (fieldType === 'geolocation')
    return composite(id, { latitude: say('latitude'), longitude: say('longitude') }, { text: false });
  return plain(field, person, id);
}

/**
 * @param {Field} field
 * @param {Person} person
 * @param {string} id
 * @returns {Input}
 */
function plain(field, { locale, timezone }, id) {
  const { fieldType, length } = field;
  const number = isNumber(field);
  const attributes = {
    id,
    autocomplete: 'off',
    ...(number ? { inputmode: 'decimal', class: 'number' } : ATTRIBUTES[fieldType]),
    ...(length && !LONG.has(fieldType) ? { maxlength: String(length) } : {}),
    ...(fieldType === 'duration' ? { placeholder: 'PT1H30M' } : {}),
  };
  const control = /** @type {HTMLInputElement | HTMLTextAreaElement} */ (
    LONG.has(fieldType) ? element('textarea', { id, rows: '4' }) : element('input', attributes)
  );
  /** What was set, as it is stored: a value that is not touched stays what it is, to the second. */
  let kept = /** @type {{ stored: unknown, text: string }} */ ({ stored: null, text: '' });
  return {
    part: control,
    value: () => {
      const { value } = control;
      if (value === kept.text) return kept.stored;
      if (value.trim() === '') return null;
      if (number) return numberOf(value, locale);
      if (fieldType === 'dateTime') return fromClock(value, timezone);
      if (fieldType !== 'json') return value;
      try {
        return JSON.parse(value);
      } catch {
        throw new Unreadable(say('notJson'));
      }
    },
    set: (value) => {
      if (value === null || value === undefined) control.value = '';
      else if (number) control.value = String(value).replace('.', decimalPoint(locale));
      else if (fieldType === 'dateTime') control.value = onClock(String(value), timezone);
      else control.value = fieldType === 'json' ? JSON.stringify(value, null, 2) : String(value);
      kept = { stored: value ?? null, text: control.value };
    },
    focus: () => control.focus(),
  };
}

/** @param {string} locale */
const decimalPoint = (locale) =>
  new Intl.NumberFormat(locale).formatToParts(1.5).find(({ type }) => type === 'decimal')?.value ?? '.';

/**
 * A number as people of a place write it, as JSON has it. Separators of thousands count where they stand before three
 * digits; anything else is left for the API to refuse.
 * @param {string} text
 * @param {string} locale
 */
export function numberOf(text, locale) {
  const plainText = text.replaceAll(/[\s'’]/g, '');
  const number =
    decimalPoint(locale) === ','
      ? plainText.replaceAll(/\.(?=\d{3}(?:\D|$))/g, '').replace(',', '.')
      : plainText.replaceAll(/,(?=\d{3}(?:\D|$))/g, '');
  return number;
}

/**
 * @param {Field} field
 * @param {string} id
 * @returns {Input}
 */
function choice({ picklistValues, required }, id) {
  const select = /** @type {HTMLSelectElement} */ (element('select', { id }));
  const known = picklistValues ?? [];
  /** @type {string | null} */
  let controlling = null;
  /** @param {string} chosen */
  const draw = (chosen) => {
    const offered = known.filter(
      ({ value, active, validFor }) =>
        value === chosen || (active && (validFor === null || controlling === null || validFor.includes(controlling))),
    );
    if (chosen !== '' && !known.some(({ value }) => value === chosen))
      offered.push({ value: chosen, label: chosen, active: false, isDefault: false, validFor: null });
    fill(
      select,
      element('option', { value: '' }, required ? '' : say('none')),
      ...offered.map(({ value, label }) => element('option', { value, selected: value === chosen }, label)),
    );
  };
  draw('');
  return {
    part: select,
    value: () => select.value || null,
    set: (value) => draw(String(value ?? '')),
    focus: () => select.focus(),
    // A value that does not fit the controlling one is not kept.
    control: (value) => {
      controlling = value === null || value === undefined ? '' : String(value);
      const chosen = known.find((one) => one.value === select.value);
      draw(chosen && (chosen.validFor === null || chosen.validFor.includes(controlling)) ? chosen.value : '');
    },
  };
}

/**
 * @param {Field} field
 * @param {string} id
 * @returns {Input}
 */
function boxes({ picklistValues }, id) {
  const inputs = (picklistValues ?? [])
    .filter(({ active }) => active)
    .map(({ value, label }, at) => {
      const input = /** @type {HTMLInputElement} */ (element('input', { type: 'checkbox', id: `${id}-${at}`, value }));
      return {
        input,
        part: element('div', { class: 'choice' }, input, element('label', { for: `${id}-${at}` }, label)),
      };
    });
  return {
    part: element('div', { id, role: 'group', class: 'boxes' }, ...inputs.map(({ part }) => part)),
    value: () => {
      const chosen = inputs.filter(({ input }) => input.checked).map(({ input }) => input.value);
      return chosen.length > 0 ? chosen : null;
    },
    set: (value) => {
      const chosen = new Set([value ?? []].flat());
      for (const { input } of inputs) input.checked = chosen.has(input.value);
    },
    focus: () => inputs[0]?.input.focus(),
  };
}

/**
 * @param {string} id
 * @returns {Input}
 */
function checkbox(id) {
  const input = /** @type {HTMLInputElement} */ (element('input', { type: 'checkbox', id }));
  let unset = true;
  return {
    part: input,
    value: () => (unset && !input.checked ? null : input.checked),
    set: (value) => {
      unset = value === null || value === undefined;
      input.checked = value === true;
    },
    focus: () => input.focus(),
  };
}

/**
 * A value of several parts.
 * @param {string} id
 * @param {Record<string, string>} labels
 * @param {{ text: boolean }} form whether its parts are texts
 * @returns {Input}
 */
function composite(id, labels, { text }) {
  const inputs = Object.entries(labels).map(([name, label]) => {
    const input = /** @type {HTMLInputElement} */ (
      element('input', {
        id: `${id}-${name}`,
        autocomplete: 'off',
        ...(text ? { maxlength: '255' } : { inputmode: 'decimal' }),
      })
    );
    return { name, input, part: element('div', {}, element('label', { for: `${id}-${name}` }, label), input) };
  });
  return {
    part: element('div', { id, role: 'group', class: 'composite' }, ...inputs.map(({ part }) => part)),
    value: () => {
      if (inputs.every(({ input }) => input.value.trim() === '')) return null;
      return Object.fromEntries(
        inputs.map(({ name, input }) => {
          const value = input.value.trim();
          return [name, value === '' ? null : text ? value : Number(value.replace(',', '.'))];
        }),
      );
    },
    set: (value) => {
      const parts = /** @type {Values} */ (value ?? {});
      for (const { name, input } of inputs) input.value = String(parts[name] ?? '');
    },
    focus: () => inputs[0]?.input.focus(),
  };
}

/**
 * Whether two values of a field are the same, however they are written.
 * @param {unknown} a
 * @param {unknown} b
 * @param {Field} field
 */
export function same(a, b, field) {
  const [left, right] = [a ?? null, b ?? null];
  if (left === null || right === null) return left === right;
  if (isNumber(field)) return plainDigits(left) === plainDigits(right);
  if (field.fieldType === 'dateTime') return Date.parse(String(left)) === Date.parse(String(right));
  if (Array.isArray(left) && Array.isArray(right)) return sorted(left) === sorted(right);
  if (typeof left === 'object' && typeof right === 'object') return inOrder(left) === inOrder(right);
  return left === right;
}

/** @param {unknown} value */
const plainDigits = (value) => {
  const digits = String(value);
  return digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits;
};

/** @param {unknown[]} list */
const sorted = (list) => JSON.stringify([...list].map(String).sort());

/** @param {object} value */
const inOrder = (value) => JSON.stringify(Object.entries(value).sort(([a], [b]) => a.localeCompare(b)));
