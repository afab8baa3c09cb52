/**
 * Chart of a result: the first dimension makes the categories, further dimensions and the measures make
 * the series. Rows of several currencies stay apart, for the API gives each a row of its own.
 */
import { numeric, text } from '../../shared/format.js';
import { say } from './words.js';

/** @import { Column, Granularity, Place } from '../../shared/types.d.ts' */
/** @import { ChartData, Group, Series, Widget, WidgetResult, Writer } from './types.d.ts' */

/** Kinds of widgets that are drawn. */
export const KINDS = new Set(['bar', 'line', 'area', 'pie', 'funnel']);

/** Kinds of widgets that are written. */
export const WRITTEN_KINDS = new Set(['metric', 'table', 'pivot', 'text']);

/** So many can be distinguished; a table shows the rest. */
export const SERIES_MAX = 8;
const SLICES_MAX = 8;
const UNITS_MAX = 2;
/** Charts of one series. */
const SINGLE = new Set(['pie', 'funnel']);
const REFERENCES = new Set(['reference', 'masterDetail']);
/** Sums of these over a part are those of the part. */
const ADDITIVE = new Set(['count', 'sum']);

/**
 * The granularity of a dimension's column, whose key ends in it.
 * @param {Column} column
 * @param {Widget} widget
 * @returns {Granularity | undefined}
 */
function granularityOf({ key }, { query }) {
  return query?.dimensions.find(({ field, granularity }) => granularity && key === `${field}_${granularity}`)
    ?.granularity;
}

/**
 * Index of an implicit currency column, which the amounts beside it already show; -1: none.
 * @param {WidgetResult} result
 * @param {Widget} widget
 */
export function addedCurrencyAt({ columns }, { query }) {
  const keys = new Set(columns.flatMap(({ currencyKey }) => currencyKey ?? []));
  for (const { field, granularity } of query?.dimensions ?? []) if (!granularity) keys.delete(field);
  // Columns that tell apart the currencies of different amounts are shown.
  return keys.size === 1 ? columns.findIndex(({ key, role }) => role === 'dimension' && keys.has(key)) : -1;
}

/**
 * The column as it counts for one row, whose amounts may have another currency than those of the next.
 * @param {WidgetResult} result
 * @returns {(row: unknown[], index: number) => Column}
 */
export function columnsOf({ columns }) {
  const places = columns.map(({ currencyKey }) =>
    currencyKey === undefined ? -1 : columns.findIndex(({ key, role }) => role === 'dimension' && key === currencyKey),
  );
  return (row, index) => {
    const column = /** @type {Column} */ (columns[index]);
    const currency = row[places[index] ?? -1];
    return typeof currency === 'string' ? { ...column, currency } : column;
  };
}

/**
 * The result with the names that the widget gives its columns (`options.labels`, by key).
 * @param {WidgetResult} result
 * @param {Widget} widget
 * @returns {WidgetResult}
 */
export function named(result, { options }) {
  const labels = options['labels'];
  if (typeof labels !== 'object' || labels === null) return result;
  /** @type {Map<string, unknown>} */
  const names = new Map(Object.entries(labels));
  return {
    ...result,
    columns: result.columns.map((column) => {
      const label = names.get(column.key);
      return typeof label === 'string' && label !== '' ? { ...column, label } : column;
    }),
  };
}

/**
 * A result with the rows of the next page behind its own. Time and totals are those of the first page.
 * @param {WidgetResult} result
 * @param {WidgetResult} next
 * @returns {WidgetResult | null} null: its rows have other columns by now
 */
export function continued(result, next) {
  if (JSON.stringify(result.columns) !== JSON.stringify(next.columns)) return null;
  const { rowCount, truncated, nextCursor } = next;
  const labels = { ...result.labels };
  for (const [key, names] of Object.entries(next.labels ?? {})) labels[key] = { ...labels[key], ...names };
  return { ...result, rows: [...result.rows, ...next.rows], labels, rowCount, truncated, nextCursor };
}

/**
 * @param {WidgetResult} result
 * @param {Widget} widget
 * @param {Place} place
 * @returns {Writer}
 */
export function writerOf(result, widget, place) {
  const columnOf = columnsOf(result);
  return (row, index) => {
    const column = columnOf(row, index);
    const value = row[index];
    const label = column.role === 'dimension' ? labelOf(result, column, value) : undefined;
    // Only records that the person can see have a name.
    if (label === undefined && REFERENCES.has(column.fieldType) && value !== null) return say('hidden');
    return label ?? text(row[index], column, place, granularityOf(column, widget));
  };
}

/**
 * @param {WidgetResult} result
 * @param {Column} column
 * @param {unknown} value
 * @returns {string | undefined}
 */
function labelOf({ labels }, { key }, value) {
  const known = labels && Object.hasOwn(labels, key) ? labels[key] : undefined;
  return known && typeof value === 'string' && Object.hasOwn(known, value) ? known[value] : undefined;
}

/**
 * @param {Column} column
 * @param {Widget} widget
 */
const isTime = (column, widget) =>
  granularityOf(column, widget) !== undefined || column.fieldType === 'date' || column.fieldType === 'dateTime';

/**
 * @param {WidgetResult} result
 * @param {Widget} widget
 * @param {Place} place
 * @returns {ChartData & { time: boolean, left: number }} `left`: series that are in the table alone
 */
export function chartData(result, widget, place) {
  const { columns, rows } = result;
  const written = writerOf(result, widget, place);
  const columnOf = columnsOf(result);
  const indexes = columns.map((column, index) => ({ column, index }));
  const dimensions = indexes.filter(({ column }) => column.role === 'dimension');
  const measures = indexes.filter(({ column }) => column.role === 'measure');
  const [first, ...others] = dimensions;
  const time = first !== undefined && isTime(first.column, widget);
  const ordered = time ? sortedByTime(rows, first.index) : rows;
  // Distinguished by their values: two customers may have one name.
  /** @type {Map<string, { label: string, index: number, groups: Group[] }>} */
  const categories = new Map();
  /** @type {Map<string, Series>} */
  const series = new Map();
  for (const row of ordered) {
    const value = JSON.stringify(first ? row[first.index] : null);
    const category = categories.get(value) ?? {
      label: first ? written(row, first.index) : '',
      index: categories.size,
      groups: first ? [{ key: first.column.key, value: row[first.index] }] : [],
    };
    categories.set(value, category);
    const name = others.map((at) => written(row, at.index)).join(' · ');
    for (const { column, index } of measures) {
      const label = name === '' ? column.label : measures.length === 1 ? name : `${name} · ${column.label}`;
      const key = JSON.stringify([column.key, ...others.map((at) => row[at.index])]);
      const known = series.get(key) ?? {
        label,
        column: columnOf(row, index),
        values: [],
        groups: others.map((at) => ({ key: at.column.key, value: row[at.index] })),
      };
      known.values[category.index] = numeric(row[index]);
      series.set(key, known);
    }
  }
  const all = byUnit([...series.values()]);
  for (const one of all) one.values = Array.from({ length: categories.size }, (_, i) => one.values[i] ?? null);
  // An axis for each unit, of which a chart has two.
  const units = [...new Set(all.map(({ column }) => unitOf(column)))].slice(0, UNITS_MAX);
  const drawn = all
    .filter(({ column }) => units.includes(unitOf(column)))
    .slice(0, SINGLE.has(widget.type) ? 1 : SERIES_MAX);
  return {
    categories: [...categories.values()].map(({ label }) => label),
    groups: [...categories.values()].flatMap(({ groups }) => groups),
    series: drawn,
    time,
    left: all.length - drawn.length,
  };
}

/**
 * Values of the dimensions in a row.
 * @param {WidgetResult} result
 * @param {unknown[]} row
 * @returns {Group[]}
 */
export const groupsOf = ({ columns }, row) =>
  columns.flatMap(({ key, role }, index) => (role === 'dimension' ? [{ key, value: row[index] }] : []));

/** @param {Column} column */
export const unitOf = ({ fieldType, currency }) => (fieldType === 'percent' ? '%' : (currency ?? ''));

/**
 * Series of the unit that most values have come first, and are on the first axis.
 * @param {Series[]} series
 */
function byUnit(series) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { column, values } of series) {
    const unit = unitOf(column);
    counts.set(unit, (counts.get(unit) ?? 0) + values.filter((value) => value !== null).length);
  }
  /** @param {Series} one */
  const count = ({ column }) => counts.get(unitOf(column)) ?? 0;
  return series.toSorted((a, b) => count(b) - count(a));
}

/**
 * ISO dates are in order when their texts are.
 * @param {unknown[][]} rows
 * @param {number} index
 */
const sortedByTime = (rows, index) =>
  rows.toSorted((a, b) => {
    const [left, right] = [String(a[index] ?? ''), String(b[index] ?? '')];
    return left < right ? -1 : left > right ? 1 : 0;
  });

/**
 * The slices of a pie; small ones are put together where their sum means something.
 * @param {ChartData} data
 * @param {Widget} widget
 * @returns {{ labels: string[], values: number[], at: number[] }} at: the category of each; -1: of several
 */
export function slices({ categories, series }, widget) {
  const [only] = series;
  const values = (only?.values ?? []).map((value) => Math.max(0, value ?? 0));
  const additive = ADDITIVE.has(widget.query?.measures.find(({ key }) => key === only?.column.key)?.aggregation ?? '');
  if (categories.length <= SLICES_MAX || !additive)
    return { labels: categories, values, at: values.map((_, index) => index) };
  const order = values.map((_, index) => index).sort((a, b) => (values[b] ?? 0) - (values[a] ?? 0));
  const kept = order.slice(0, SLICES_MAX - 1);
  const rest = order.slice(SLICES_MAX - 1);
  return {
    labels: [...kept.map((index) => categories[index] ?? ''), say('others')(rest.length)],
    values: [...kept.map((index) => values[index] ?? 0), rest.reduce((sum, index) => sum + (values[index] ?? 0), 0)],
    at: [...kept, -1],
  };
}

/**
 * A sentence for those who do not see the chart.
 * @param {string} kind
 * @param {ChartData} data
 * @param {(value: number, column: Column) => string} written
 */
export function description(kind, { categories, series }, written) {
  const parts = [`${kind}, ${say('categories')(categories.length)}, ${say('series')(series.length)}.`];
  for (const { label, values, column } of series.slice(0, 3)) {
    const found = values.flatMap((value, index) => (value === null ? [] : [{ value, index }]));
    const [some] = found;
    if (!some) continue;
    const most = found.reduce((a, b) => (b.value > a.value ? b : a), some);
    const least = found.reduce((a, b) => (b.value < a.value ? b : a), some);
    parts.push(
      say('extremes')(
        label,
        written(most.value, column),
        categories[most.index] ?? '',
        written(least.value, column),
        categories[least.index] ?? '',
      ),
    );
  }
  parts.push(say('byKeys'));
  return parts.join(' ');
}

/**
 * Rows by the first dimension, columns by the others, as a pivot table has them.
 * @param {WidgetResult} result
 * @param {Widget} widget
 * @param {Place} place
 */
export function pivot(result, widget, place) {
  const { columns } = result;
  const first = columns.findIndex(({ role }) => role === 'dimension');
  // A line of its own for each currency, not columns, most of which would be empty.
  const added = addedCurrencyAt(result, widget);
  const across = columns.flatMap(({ role }, at) => (role === 'dimension' && at !== first && at !== added ? [at] : []));
  const measures = columns.flatMap(({ role }, at) => (role === 'measure' ? [at] : []));
  const written = writerOf(result, widget, place);
  const [next = -1] = across;
  const column = columns[next];
  const rows = column && isTime(column, widget) ? sortedByTime(result.rows, next) : result.rows;
  /** @type {Map<string, string>} */
  const heads = new Map();
  for (const row of rows)
    for (const measure of measures) {
      const name = across.map((at) => written(row, at)).join(' · ');
      const label = [name, ...(measures.length > 1 || name === '' ? [columns[measure]?.label ?? ''] : [])];
      heads.set(headOf(row, across, measure), label.filter((part) => part !== '').join(' · '));
    }
  /** @type {Map<string, { label: string, groups: Group[], cells: Map<string, { written: string, groups: Group[] }> }>} */
  const lines = new Map();
  for (const row of result.rows) {
    const key = JSON.stringify([row[first], added < 0 ? null : row[added]]);
    const groups = groupsOf(result, row);
    const keys = [first, added].map((at) => columns[at]?.key);
    const line = lines.get(key) ?? {
      label: first < 0 ? say('all') : written(row, first),
      groups: groups.filter((one) => keys.includes(one.key)),
      cells: new Map(),
    };
    lines.set(key, line);
    for (const measure of measures) {
      line.cells.set(headOf(row, across, measure), { written: written(row, measure), groups });
    }
  }
  return { corner: columns[first]?.label ?? '', heads, lines: [...lines.values()] };
}

/**
 * @param {unknown[]} row
 * @param {number[]} across
 * @param {number} measure
 */
const headOf = (row, across, measure) => JSON.stringify([...across.map((at) => row[at]), measure]);
