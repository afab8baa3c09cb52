/**
 * The filters of a dashboard: read from the address, shown as a form, kept in the address so that it can be shared. The
 * catalog says what kind of value a filter takes; results offer the values that they have seen.
 */
import { call } from './api.js';
import { element, fill, foreign } from './elements.js';

/** @import { Catalog, DashboardFilter, FieldTypes, FilterValue, Widget, WidgetResult } from './types.d.ts' */

const PREFIX = 'filter.';
const UPPER = '.to';
/** Conditions of these take no value. */
const WITHOUT_VALUE = new Set(['is_blank', 'is_not_blank']);
const LISTS = new Set(['in', 'not_in']);
const RANGES = new Set(['between']);
const NUMBERS = new Set(['integer', 'decimal', 'currency', 'percent']);
const CHOICES_MAX = 200;
const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** Operators as people say them; the others say themselves. */
const SAID = new Map([
  ['eq', 'is'],
  ['neq', 'is not'],
  ['gt', 'over'],
  ['gte', 'from'],
  ['lt', 'below'],
  ['lte', 'up to'],
  ['between', 'between'],
  ['in', 'one of'],
  ['not_in', 'none of'],
]);

/** @param {{ objectApiName: string, field: string }} named */
const keyOf = ({ objectApiName, field }) => `${objectApiName}.${field}`;

/**
 * @param {readonly DashboardFilter[]} filters
 * @param {AbortSignal} signal
 * @returns {Promise<FieldTypes>}
 */
export async function fieldTypes(filters, signal) {
  const objects = [...new Set(filters.map(({ objectApiName }) => objectApiName))];
  const found = await Promise.all(
    objects.map(async (objectApiName) => {
      // Without the catalog a filter takes texts, which is better than no filter.
      const catalog = await /** @type {Promise<Catalog>} */ (
        call(`/analytics/catalog/${encodeURIComponent(objectApiName)}`, { signal })
      ).catch(() => ({ dimensions: [] }));
      return catalog.dimensions.map(
        ({ field, fieldType }) => /** @type {const} */ ([keyOf({ objectApiName, field }), fieldType]),
      );
    }),
  );
  return new Map(found.flat());
}

/**
 * A value of the filter's kind from what somebody typed.
 * @param {string} typed
 * @param {string} operator
 * @param {string | undefined} fieldType
 * @returns {unknown}
 */
function parsed(typed, operator, fieldType) {
  /** @param {string} one */
  const single = (one) => {
    if (NUMBERS.has(fieldType ?? '') && Number.isFinite(Number(one))) return Number(one);
    return fieldType === 'boolean' ? one === 'true' : one;
  };
  if (!LISTS.has(operator)) return single(typed);
  return typed
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)
    .map(single);
}

/** @param {DashboardFilter} filter */
const isFixed = ({ locked, operator }) => locked || WITHOUT_VALUE.has(operator);

/**
 * @param {readonly DashboardFilter[]} filters
 * @param {URLSearchParams} address
 * @returns {boolean} whether the address has a value for one of them
 */
export const isFiltered = (filters, address) => filters.some(({ filterKey }) => address.get(PREFIX + filterKey));

/**
 * @param {readonly DashboardFilter[]} filters
 * @param {FieldTypes} types
 * @param {URLSearchParams} address
 * @returns {Record<string, FilterValue> | undefined} for the run of a widget; without what the dashboard says itself
 */
export function filterValues(filters, types, address) {
  /** @type {Record<string, FilterValue>} */
  const values = {};
  for (const filter of filters) {
    const { filterKey, operator } = filter;
    const lower = address.get(PREFIX + filterKey);
    if (!lower || isFixed(filter)) continue;
    const upper = address.get(PREFIX + filterKey + UPPER);
    const type = types.get(keyOf(filter));
    values[filterKey] = {
      value: parsed(lower, operator, type),
      ...(upper && RANGES.has(operator) ? { valueTo: parsed(upper, operator, type) } : {}),
    };
  }
  return Object.keys(values).length > 0 ? values : undefined;
}

/** @param {unknown} value */
const shown = (value) =>
  Array.isArray(value) ? value.join(', ') : value === undefined || value === null ? '' : String(value);

/**
 * @param {string} name
 * @param {unknown} value
 * @param {string | undefined} fieldType
 * @param {string} label
 */
function input(name, value, fieldType, label) {
  const attributes = { name, id: name, 'aria-label': label };
  const written = shown(value);
  if (fieldType === 'boolean')
    return element(
      'select',
      attributes,
      ...['', 'true', 'false'].map((option) =>
        element(
          'option',
          { value: option, selected: written === option },
          { true: 'Yes', false: 'No' }[option] ?? 'Any',
        ),
      ),
    );
  // A day may be a word as well, such as THIS_YEAR, which the field of a browser for days does not take.
  const isDay = (fieldType === 'date' || fieldType === 'dateTime') && (written === '' || DATE.test(written));
  return element('input', {
    ...attributes,
    type: isDay ? 'date' : NUMBERS.has(fieldType ?? '') ? 'number' : 'text',
    value: written,
    maxlength: '255',
    list: `${name}-choices`,
    ...(NUMBERS.has(fieldType ?? '') ? { step: 'any' } : {}),
  });
}

/**
 * @param {DashboardFilter} filter
 * @param {FieldTypes} types
 * @param {URLSearchParams} address
 */
function field(filter, types, address) {
  const { filterKey, label, operator, value, valueTo } = filter;
  const name = PREFIX + filterKey;
  if (isFixed(filter)) {
    const said = SAID.get(operator) ?? operator.replaceAll('_', ' ');
    const upper = valueTo === undefined ? [] : ['and', shown(valueTo)];
    const fixed = [said, shown(value), ...upper].filter(Boolean).join(' ');
    return element('p', { class: 'fixed' }, element('b', {}, foreign(label)), ' ', foreign(fixed));
  }
  const type = LISTS.has(operator) ? 'text' : types.get(keyOf(filter));
  const isRange = RANGES.has(operator);
  const lower = input(name, address.get(name) ?? value, type, isRange ? `${label}, from` : label);
  const upper = isRange ? [input(name + UPPER, address.get(name + UPPER) ?? valueTo, type, `${label}, to`)] : [];
  const parts = [
    element('label', { for: name }, foreign(label)),
    isRange ? element('div', { class: 'range' }, lower, ...upper) : lower,
    element('datalist', { id: `${name}-choices` }),
  ];
  if (LISTS.has(operator)) parts.push(element('span', { class: 'hint' }, 'Several: separate them by commas.'));
  return element('div', { class: 'filter' }, ...parts);
}

/**
 * @param {readonly DashboardFilter[]} filters
 * @param {FieldTypes} types
 * @param {URLSearchParams} address
 * @param {(address: URLSearchParams) => void} apply
 * @returns {HTMLElement}
 */
export function filterForm(filters, types, address, apply) {
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
  const actions = element(
    'div',
    { class: 'actions' },
    element('button', { type: 'submit' }, 'Apply'),
    element('button', { type: 'button', class: 'quiet', click: () => apply(new URLSearchParams(others)) }, 'Reset'),
  );
  return element(
    'form',
    { class: 'filters', 'aria-label': 'Filters', submit },
    ...filters.map((filter) => field(filter, types, address)),
    ...(filters.every(isFixed) ? [] : [actions]),
  );
}

/**
 * Offers the values that results have names for.
 * @param {HTMLElement} form
 * @param {readonly DashboardFilter[]} filters
 * @param {readonly { widget: Widget, result: WidgetResult | null }[]} seen
 */
export function offerChoices(form, filters, seen) {
  for (const filter of filters) {
    const list = form.querySelector(`datalist[id="${CSS.escape(`${PREFIX}${filter.filterKey}-choices`)}"]`);
    /** @type {Map<string, string>} */
    const choices = new Map();
    for (const { widget, result } of seen)
      if (widget.query?.objectApiName === filter.objectApiName)
        for (const [value, label] of Object.entries(result?.labels?.[filter.field] ?? {})) choices.set(value, label);
    if (list)
      fill(list, ...[...choices].slice(0, CHOICES_MAX).map(([value, label]) => element('option', { value }, label)));
  }
}
