/** The filters of a dashboard: read from the address, shown as a form, kept in the address so that it can be shared. */
import { element, foreign } from './elements.js';

/** @import { DashboardFilter, FilterValue } from './types.d.ts' */

const PREFIX = 'filter.';
const UPPER = '.to';
/** Conditions of these take no value. */
const WITHOUT_VALUE = new Set(['is_blank', 'is_not_blank']);
const LISTS = new Set(['in', 'not_in']);
const RANGES = new Set(['between']);

/**
 * A value of the filter's kind from what somebody typed: like the value that the dashboard gives, else as text.
 * @param {DashboardFilter} filter
 * @param {string} typed
 * @returns {unknown}
 */
function parsed({ operator, value }, typed) {
  /** @param {string} one @param {unknown} like */
  const single = (one, like) => {
    if (typeof like === 'number' && one !== '' && Number.isFinite(Number(one))) return Number(one);
    return typeof like === 'boolean' ? one === 'true' : one;
  };
  if (!LISTS.has(operator)) return single(typed, value);
  const like = Array.isArray(value) ? value[0] : undefined;
  return typed
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)
    .map((part) => single(part, like));
}

/**
 * @param {DashboardFilter[]} filters
 * @param {URLSearchParams} address
 * @returns {Record<string, FilterValue> | undefined} for the run of a widget; without what the dashboard says itself
 */
export function filterValues(filters, address) {
  /** @type {Record<string, FilterValue>} */
  const values = {};
  for (const filter of filters) {
    const typed = address.get(PREFIX + filter.filterKey);
    if (typed === null || typed === '' || filter.locked || WITHOUT_VALUE.has(filter.operator)) continue;
    const upper = address.get(PREFIX + filter.filterKey + UPPER);
    values[filter.filterKey] = {
      value: parsed(filter, typed),
      ...(upper && RANGES.has(filter.operator) ? { valueTo: parsed(filter, upper) } : {}),
    };
  }
  return Object.keys(values).length > 0 ? values : undefined;
}

/** @param {unknown} value */
const shown = (value) =>
  Array.isArray(value) ? value.join(', ') : value === undefined || value === null ? '' : String(value);

const DATE = /^\d{4}-\d{2}-\d{2}$/;

/**
 * @param {string} name
 * @param {unknown} value
 * @param {unknown} like the dashboard's own value
 * @param {string} label
 */
function input(name, value, like, label) {
  const type = typeof like === 'number' ? 'number' : typeof like === 'string' && DATE.test(like) ? 'date' : 'text';
  const attributes = { name, id: name, 'aria-label': label };
  if (typeof like === 'boolean')
    return element(
      'select',
      attributes,
      ...['true', 'false'].map((option) =>
        element('option', { value: option, selected: String(value) === option }, option === 'true' ? 'Yes' : 'No'),
      ),
    );
  return element('input', {
    ...attributes,
    type,
    value: shown(value),
    maxlength: '255',
    ...(type === 'number' ? { step: 'any' } : {}),
  });
}

/**
 * @param {DashboardFilter} filter
 * @param {URLSearchParams} address
 */
function field(filter, address) {
  const { filterKey, label, operator, value, valueTo, locked } = filter;
  const name = PREFIX + filterKey;
  if (locked || WITHOUT_VALUE.has(operator)) {
    const fixed = [
      operator.replaceAll('_', ' '),
      shown(value),
      ...(valueTo === undefined ? [] : ['and', shown(valueTo)]),
    ];
    return element(
      'p',
      { class: 'fixed' },
      element('b', {}, foreign(label)),
      ' ',
      foreign(fixed.filter(Boolean).join(' ')),
    );
  }
  const isRange = RANGES.has(operator);
  const lower = input(name, address.get(name) ?? value, value, isRange ? `${label}, from` : label);
  const upper = isRange
    ? [input(name + UPPER, address.get(name + UPPER) ?? valueTo, valueTo ?? value, `${label}, to`)]
    : [];
  const parts = [
    element('label', { for: name }, foreign(label)),
    isRange ? element('div', { class: 'range' }, lower, ...upper) : lower,
  ];
  if (LISTS.has(operator)) parts.push(element('span', { class: 'hint' }, 'Several: separate them by commas.'));
  return element('div', { class: 'filter' }, ...parts);
}

/**
 * @param {DashboardFilter[]} filters
 * @param {URLSearchParams} address
 * @param {(address: URLSearchParams) => void} apply
 * @returns {HTMLElement | null} null: there is nothing to filter by
 */
export function filterForm(filters, address, apply) {
  if (filters.length === 0) return null;
  const others = [...address].filter(([name]) => !name.startsWith(PREFIX));
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const next = new URLSearchParams(others);
    for (const [name, value] of new FormData(event.currentTarget))
      if (typeof value === 'string' && value.trim() !== '') next.set(name, value.trim());
    apply(next);
  };
  const reset = () => apply(new URLSearchParams(others));
  const changeable = filters.some(({ locked, operator }) => !locked && !WITHOUT_VALUE.has(operator));
  return element(
    'form',
    { class: 'filters', 'aria-label': 'Filters', submit },
    ...filters.map((filter) => field(filter, address)),
    ...(changeable
      ? [
          element(
            'div',
            { class: 'actions' },
            element('button', { type: 'submit' }, 'Apply'),
            element('button', { type: 'button', class: 'quiet', click: reset }, 'Reset'),
          ),
        ]
      : []),
  );
}
