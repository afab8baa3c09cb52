/**
 * What a chart draws of a result: the first dimension makes the categories, further dimensions and the measures make the
 * series. Rows of several currencies stay apart, for the API gives each a row of its own.
 */
import { numeric, text } from './format.js';

/** @import { ChartData, Column, Granularity, Place, Series, Widget, WidgetResult, Writer } from './types.d.ts' */

/** So many can be told apart; a table shows the rest. */
export const SERIES_MAX = 8;
export const SLICES_MAX = 8;
const CURRENCY_CODE = /^[A-Z]{3}$/;
/** Sums of these over a part are those of the part. */
const ADDITIVE = new Set(['count', 'sum']);

/**
 * The granularity of a dimension's column, whose key ends in it.
 * @param {Column} column
 * @param {Widget} widget
 * @returns {Granularity | undefined}
 */
export function granularityOf({ key }, { query }) {
  return query?.dimensions.find(({ field, granularity }) => granularity && key === `${field}_${granularity}`)
    ?.granularity;
}

/**
 * The column as it counts for one row. Amounts of several currencies have none in their column: then the API adds a
 * dimension that names the currency of each row.
 * @param {WidgetResult} result
 * @returns {(row: unknown[], index: number) => Column}
 */
export function columnsOf({ columns, rows }) {
  /** An empty currency is one of its own. @param {number} index */
  const isCurrency = (index) =>
    rows.some((row) => row[index] !== null) &&
    rows.every((row) => row[index] === null || CURRENCY_CODE.test(String(row[index])));
  const at = columns.findLastIndex(({ role }, index) => role === 'dimension' && isCurrency(index));
  return (row, index) => {
    const column = /** @type {Column} */ (columns[index]);
    const currency = row[at];
    const own = column.fieldType === 'currency' && column.role === 'measure' && column.currency === null;
    return own && typeof currency === 'string' ? { ...column, currency } : column;
  };
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
    const label = column.role === 'dimension' ? labelOf(result, column, row[index]) : undefined;
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
  /** @type {Map<string, number>} */
  const categories = new Map();
  /** @type {Map<string, Series>} */
  const series = new Map();
  for (const row of ordered) {
    const category = first ? written(row, first.index) : '';
    if (!categories.has(category)) categories.set(category, categories.size);
    const name = others.map((at) => written(row, at.index)).join(' · ');
    for (const { column, index } of measures) {
      const label = name === '' ? column.label : measures.length === 1 ? name : `${name} · ${column.label}`;
      const key = JSON.stringify([column.key, name]);
      const known = series.get(key) ?? { label, column: columnOf(row, index), values: [] };
      known.values[categories.get(category) ?? 0] = numeric(row[index]);
      series.set(key, known);
    }
  }
  const all = [...series.values()];
  for (const one of all) one.values = Array.from({ length: categories.size }, (_, i) => one.values[i] ?? null);
  return {
    categories: [...categories.keys()],
    series: all.slice(0, SERIES_MAX),
    time,
    left: Math.max(0, all.length - SERIES_MAX),
  };
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
 * @returns {{ labels: string[], values: number[] }}
 */
export function slices({ categories, series }, widget) {
  const [only] = series;
  const values = (only?.values ?? []).map((value) => Math.max(0, value ?? 0));
  const additive = ADDITIVE.has(widget.query?.measures.find(({ key }) => key === only?.column.key)?.aggregation ?? '');
  if (categories.length <= SLICES_MAX || !additive) return { labels: categories, values };
  const order = values.map((_, index) => index).sort((a, b) => (values[b] ?? 0) - (values[a] ?? 0));
  const kept = order.slice(0, SLICES_MAX - 1);
  const rest = order.slice(SLICES_MAX - 1);
  return {
    labels: [...kept.map((index) => categories[index] ?? ''), `${rest.length} others`],
    values: [...kept.map((index) => values[index] ?? 0), rest.reduce((sum, index) => sum + (values[index] ?? 0), 0)],
  };
}

/**
 * A sentence for those who do not see the chart.
 * @param {string} kind
 * @param {ChartData} data
 * @param {(value: number, column: Column) => string} written
 */
export function description(kind, { categories, series }, written) {
  const parts = [
    `${kind}, ${plural(categories.length, 'category', 'categories')}, ${plural(series.length, 'series', 'series')}.`,
  ];
  for (const { label, values, column } of series.slice(0, 3)) {
    const found = values.flatMap((value, index) => (value === null ? [] : [{ value, index }]));
    const [some] = found;
    if (!some) continue;
    const most = found.reduce((a, b) => (b.value > a.value ? b : a), some);
    const least = found.reduce((a, b) => (b.value < a.value ? b : a), some);
    parts.push(
      `${label}: highest ${written(most.value, column)} (${categories[most.index]}), ` +
        `lowest ${written(least.value, column)} (${categories[least.index]}).`,
    );
  }
  parts.push('The table holds every value.');
  return parts.join(' ');
}

/** @param {number} count @param {string} one @param {string} many */
const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`;

/**
 * Rows by the first dimension, columns by the others, as a pivot table has them.
 * @param {WidgetResult} result
 * @param {Widget} widget
 * @param {Place} place
 */
export function pivot(result, widget, place) {
  const { columns, rows } = result;
  const at = columns.findIndex(({ role }) => role === 'dimension');
  const others = columns.flatMap((column, index) => (column.role === 'dimension' && index !== at ? [index] : []));
  const measures = columns.flatMap((column, index) => (column.role === 'measure' ? [index] : []));
  const written = writerOf(result, widget, place);
  /** @type {Map<string, { label: string, measure: number }>} */
  const heads = new Map();
  /** @type {Map<string, Map<string, string>>} */
  const lines = new Map();
  for (const row of rows) {
    const line = at < 0 ? 'All' : written(row, at);
    const cells = lines.get(line) ?? new Map();
    lines.set(line, cells);
    const name = others.map((index) => written(row, index)).join(' · ');
    for (const measure of measures) {
      const label = [name, ...(measures.length > 1 || name === '' ? [columns[measure]?.label ?? ''] : [])]
        .filter((part) => part !== '')
        .join(' · ');
      const key = JSON.stringify([name, measure]);
      if (!heads.has(key)) heads.set(key, { label, measure });
      cells.set(key, written(row, measure));
    }
  }
  return { corner: columns[at]?.label ?? '', heads, lines };
}
