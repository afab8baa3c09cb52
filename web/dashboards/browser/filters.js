/**
 * The filters of a dashboard: read from the address, shown as a form, kept in the address so that it can be shared. The
 * catalog says what kind of value a filter takes; results offer the values that they have seen.
 */
import { call } from '../../shared/api.js';
import { element, fill, foreign } from '../../shared/elements.js';
import { dayEnd, dayStart } from '../../shared/format.js';
import { common } from '../../shared/words.js';
import { WITHOUT_VALUE } from './records.js';
import { say } from './words.js';

/** @import { Catalog, Choice, DashboardFilter, FilterField, FilterFields, FilterValue, Widget, WidgetResult } from './types.d.ts' */

const PREFIX = 'filter.';
const UPPER = '.to';
const LISTS = new Set(['in', 'not_in']);
const RANGES = new Set(['between']);
const NUMBERS = new Set(['integer', 'decimal', 'currency', 'percent']);
const CHOICES_MAX = 200;
const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** @param {{ objectApiName: string, field: string }} named */
const keyOf = ({ objectApiName, field }) => `${objectApiName}.${field}`;

/**
 * Asks for the catalog of each object once. Without it a filter takes texts, which is better than no filter.
 * @param {AbortSignal} signal
 * @returns {(objectApiName: string) => Promise<Catalog>}
 */
export function catalogs(signal) {
  /** @type {Map<string, Promise<Catalog>>} */
  const asked = new Map();
  return (objectApiName) => {
    const known = asked.get(objectApiName);
    if (known) return known;
    const asking = call(`/analytics/catalog/${encodeURIComponent(objectApiName)}`, { signal }).catch(() => ({
      dimensions: [],
    }));
    asked.set(objectApiName, asking);
    return asking;
  };
}

/**
 * @param {readonly DashboardFilter[]} filters
 * @param {(objectApiName: string) => Promise<Catalog>} catalogOf
 * @returns {Promise<FilterFields>}
 */
export async function filterFields(filters, catalogOf) {
  const objects = [...new Set(filters.map(({ objectApiName }) => objectApiName))];
  const found = await Promise.all(
    objects.map(async (objectApiName) => {
      const catalog = await catalogOf(objectApiName);
      return catalog.dimensions.map(
        ({ field, ...takes }) => /** @type {const} */ ([keyOf({ objectApiName, field }), takes]),
      );
    }),
  );
  return new Map(found.flat());
}

/** Bounds that are the end of a day where a day is given for a moment; the others are its start. */
const ENDS = new Set(['gt', 'lte']);

/**
 * A value of the filter's kind from typed or chosen text.
 * @param {string} typed
 * @param {DashboardFilter} filter
 * @param {FilterField | undefined} field
 * @param {string} timezone
 * @param {boolean} [upper] the second value of a range
 * @returns {unknown}
 */
function parsed(typed, { operator }, field, timezone, upper = false) {
  const { fieldType, choices = null } = field ?? {};
  /** @param {string} one */
  const single = (one) => {
    if (NUMBERS.has(fieldType ?? '') && Number.isFinite(Number(one))) return Number(one);
    if (fieldType === 'boolean') return one === 'true';
    if (fieldType === 'dateTime' && DATE.test(one))
      return upper || ENDS.has(operator) ? dayEnd(one, timezone) : dayStart(one, timezone);
    // People type values by their labels in the charts.
    return choices?.find(({ label }) => label.toLowerCase() === one.toLowerCase())?.value ?? one;
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
 * @param {FilterFields} fields
 * @param {URLSearchParams} address
 * @param {string} timezone in which a day begins and ends
 * @returns {Record<string, FilterValue> | undefined} for the run of a widget; without what the dashboard says itself
 */
export function filterValues(filters, fields, address, timezone) {
  /** @type {Record<string, FilterValue>} */
  const values = {};
  for (const filter of filters) {
    const { filterKey, operator } = filter;
    const field = fields.get(keyOf(filter));
    const lower = address.get(PREFIX + filterKey);
    if (!lower || isFixed(filter)) continue;
    const upper = address.get(PREFIX + filterKey + UPPER);
    values[filterKey] = {
      value: parsed(lower, filter, field, timezone),
      ...(upper && RANGES.has(operator) ? { valueTo: parsed(upper, filter, field, timezone, true) } : {}),
    };
  }
  return Object.keys(values).length > 0 ? values : undefined;
}

/**
 * @param {readonly DashboardFilter[]} filters
 * @param {URLSearchParams} address
 * @returns {string[]} names in the address that no filter of the dashboard has, as of one that is there no longer
 */
export function unknownFilters(filters, address) {
  const known = new Set(filters.flatMap(({ filterKey }) => [PREFIX + filterKey, PREFIX + filterKey + UPPER]));
  return [...address.keys()].filter((name) => name.startsWith(PREFIX) && !known.has(name));
}

/**
 * @param {readonly DashboardFilter[]} filters
 * @param {Record<string, FilterValue> | undefined} values
 * @param {Widget} widget
 * @returns {string[]} labels of the filters that have a value and say nothing about the records of the widget
 */
export const withoutEffect = (filters, values, { query }) =>
  filters
    .filter(({ filterKey, objectApiName }) => values?.[filterKey] && objectApiName !== query?.objectApiName)
    .map(({ label }) => label);

/** @param {unknown} value */
const shown = (value) =>
  Array.isArray(value) ? value.join(', ') : value === undefined || value === null ? '' : String(value);

const booleans = () => [
  { value: 'true', label: common('yes') },
  { value: 'false', label: common('no') },
];

/**
 * @param {string} name
 * @param {unknown} value
 * @param {Partial<FilterField>} field
 * @param {string} label
 */
function input(name, value, { fieldType, choices }, label) {
  const attributes = { name, id: name, 'aria-label': label };
  const written = shown(value);
  const known = fieldType === 'boolean' ? booleans() : choices;
  if (known) {
    const isOther = written !== '' && known.every((choice) => choice.value !== written);
    const options = [
      { value: '', label: say('any') },
      ...known,
      ...(isOther ? [{ value: written, label: written }] : []),
    ];
    return element(
      'select',
      attributes,
      ...options.map((choice) =>
        element('option', { value: choice.value, selected: written === choice.value }, choice.label),
      ),
    );
  }
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

/** @param {Choice} choice */
const option = ({ value, label }) => element('option', { value }, label);

/**
 * @param {DashboardFilter} filter
 * @param {FilterFields} fields
 * @param {URLSearchParams} address
 */
function field(filter, fields, address) {
  const { filterKey, label, operator, value, valueTo } = filter;
  const name = PREFIX + filterKey;
  if (isFixed(filter)) {
    const said = say('operators')[operator] ?? operator.replaceAll('_', ' ');
    const upper = valueTo === undefined ? [] : [say('and'), shown(valueTo)];
    const fixed = [said, shown(value), ...upper].filter(Boolean).join(' ');
    return element('p', { class: 'fixed' }, element('b', {}, foreign(label)), ' ', foreign(fixed));
  }
  const takes = fields.get(keyOf(filter));
  const single = (LISTS.has(operator) ? null : takes) ?? {};
  const isRange = RANGES.has(operator);
  const lower = input(name, address.get(name) ?? value, single, isRange ? say('from')(label) : label);
  const upper = isRange ? [input(name + UPPER, address.get(name + UPPER) ?? valueTo, single, say('upTo')(label))] : [];
  const parts = [
    element('label', { for: name }, foreign(label)),
    isRange ? element('div', { class: 'range' }, lower, element('span', {}, say('to')), ...upper) : lower,
    element('datalist', { id: `${name}-choices` }, ...(takes?.choices ?? []).map(option)),
  ];
  if (LISTS.has(operator)) parts.push(element('span', { class: 'hint' }, say('several')));
  return element('div', { class: 'filter' }, ...parts);
}

/**
 * @param {readonly DashboardFilter[]} filters
 * @param {FilterFields} fields
 * @param {URLSearchParams} address
 * @param {(address: URLSearchParams) => void} apply
 * @returns {HTMLElement}
 */
export function filterForm(filters, fields, address, apply) {
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
    element('button', { type: 'submit' }, say('apply')),
    element(
      'button',
      { type: 'button', class: 'quiet', click: () => apply(new URLSearchParams(others)) },
      say('reset'),
    ),
  );
  return element(
    'form',
    { class: 'filters', 'aria-label': say('filters'), submit },
    ...filters.map((filter) => field(filter, fields, address)),
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
    // Those of a picklist are there.
    if (list && list.childElementCount === 0)
      fill(list, ...[...choices].slice(0, CHOICES_MAX).map(([value, label]) => option({ value, label })));
  }
}
