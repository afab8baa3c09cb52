/** Links from a value of a widget to the records that it was computed from, in the list of their object. */
import { dayEnd, dayStart } from '../../shared/format.js';

/** @import { Granularity } from '../../shared/types.d.ts' */
/** @import { Condition, Dashboard, DashboardFilter, FilterValue, Group, Widget } from './types.d.ts' */

/** Conditions that a list takes. */
const CONDITIONS_MAX = 20;
/** Operators of conditions without a value. */
export const WITHOUT_VALUE = new Set(['is_blank', 'is_not_blank']);
const MONTHS = { month: 1, quarter: 3, year: 12 };

/**
 * @typedef {object} Behind
 * @property {Dashboard} dashboard
 * @property {Record<string, FilterValue> | undefined} filterValues of the run
 * @property {ReadonlyMap<string, string>} types of fields by name; those of periods are needed
 * @property {string} timezone in which days begin
 */

/**
 * @param {Widget} widget
 * @param {Behind} behind
 * @returns {(groups: readonly Group[]) => string | null} address of the records of these groups; null: no list can be
 *   limited to exactly them
 */
export function recordLinks({ query }, { dashboard, filterValues, types, timezone }) {
  if (!query) return () => null;
  const { objectApiName, dimensions, filters } = query;
  const own = filters?.conditions ?? [];
  const isEither = filters?.logic === 'or' && own.length > 1;
  const given = dashboard.filters
    .filter((filter) => filter.objectApiName === objectApiName)
    .flatMap((filter) => conditionOf(filter, filterValues) ?? []);
  return (groups) => {
    const conditions = [...given];
    for (const { key, value } of groups) {
      const dimension = dimensions.find(({ field, granularity }) => key === keyOf(field, granularity));
      const condition = groupCondition(key, value, dimension, types, timezone);
      if (!condition) return null;
      conditions.push(condition);
    }
    const all = [...own, ...conditions];
    if (all.length > CONDITIONS_MAX || (isEither && conditions.length > 0)) return null;
    const path = `/app/${encodeURIComponent(objectApiName)}`;
    if (all.length === 0) return path;
    return `${path}?${new URLSearchParams({ filters: JSON.stringify({ logic: isEither ? 'or' : 'and', conditions: all }) })}`;
  };
}

/**
 * The condition on records that a filter is in a run.
 * @param {DashboardFilter} filter
 * @param {Record<string, FilterValue> | undefined} values given with the run
 * @returns {Condition | null} null: it has no value, so that it does not apply
 */
function conditionOf({ filterKey, field, operator, value, valueTo }, values) {
  if (WITHOUT_VALUE.has(operator)) return { field, operator };
  const given = values?.[filterKey] ?? { value, valueTo };
  if (given.value === undefined || given.value === null) return null;
  return {
    field,
    operator,
    value: given.value,
    ...(given.valueTo === undefined || given.valueTo === null ? {} : { valueTo: given.valueTo }),
  };
}

/**
 * @param {string} field
 * @param {Granularity | undefined} granularity
 */
const keyOf = (field, granularity) => (granularity ? `${field}_${granularity}` : field);

/**
 * @param {string} key of the column
 * @param {unknown} value
 * @param {{ field: string, granularity?: Granularity } | undefined} dimension undefined: the currency that the platform has
 *   added, whose key is the name of its field
 * @param {ReadonlyMap<string, string>} types
 * @param {string} timezone
 * @returns {Condition | null}
 */
function groupCondition(key, value, dimension, types, timezone) {
  const field = dimension?.field ?? key;
  if (value === null || value === undefined || value === '') return { field, operator: 'is_blank' };
  const granularity = dimension?.granularity;
  if (!granularity) return Array.isArray(value) ? null : { field, operator: 'eq', value };
  const first = String(value);
  const last = lastDay(first, granularity);
  const type = types.get(field);
  if (type === 'dateTime')
    return { field, operator: 'between', value: dayStart(first, timezone), valueTo: dayEnd(last, timezone) };
  return type === 'date' ? { field, operator: 'between', value: first, valueTo: last } : null;
}

/**
 * @param {string} first day of a period
 * @param {Granularity} granularity
 */
function lastDay(first, granularity) {
  const day = new Date(`${first}T00:00:00Z`);
  if (granularity === 'day') return first;
  if (granularity === 'week') day.setUTCDate(day.getUTCDate() + 6);
  else day.setUTCMonth(day.getUTCMonth() + MONTHS[granularity], 0);
  return day.toISOString().slice(0, 10);
}
