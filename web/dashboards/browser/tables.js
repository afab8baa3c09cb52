/** Results as tables, plain and pivoted, and as single figures. */
import { element, foreign } from '../../shared/elements.js';
import { number, numeric, text } from '../../shared/format.js';
import { addedCurrencyAt, columnsOf, groupsOf, pivot, writerOf } from './result.js';
import { say } from './words.js';

/** @import { Column, Place } from '../../shared/types.d.ts' */
/** @import { Group, Widget, WidgetResult } from './types.d.ts' */

/** @typedef {(groups: readonly Group[]) => string | null} Links addresses of the records behind */

const NUMBERS = new Set(['integer', 'decimal', 'currency', 'percent']);
/** Characters of a figure that fit in its place. */
const FIGURE_MAX = 11;

/**
 * A table may be wider than its place: then the keyboard scrolls it, too.
 * @param {string} title
 * @param {HTMLElement} table
 */
const scrolled = (title, table) =>
  element('div', { class: 'table', role: 'region', tabindex: '0', 'aria-label': say('tableOf')(title) }, table);

/** @param {string} title */
const caption = (title) => element('caption', { class: 'visually-hidden' }, foreign(title));

/** @param {Column} column */
const align = ({ role, fieldType }) => (role === 'measure' || NUMBERS.has(fieldType) ? { class: 'figure' } : {});

/**
 * The text, as a link where there is an address.
 * @param {string} written
 * @param {string | null} href
 */
const linked = (written, href) => (href ? element('a', { href }, foreign(written)) : foreign(written));

/**
 * @param {Column} column
 * @returns {string} the label, with the unit where its values do not show one
 */
const head = ({ label, currency }) => (currency && !label.includes(currency) ? `${label} (${currency})` : label);

/**
 * @param {Widget} widget
 * @param {WidgetResult} result
 * @param {Place} place
 * @param {Links} links
 */
export function table(widget, result, place, links) {
  const { rows, totals } = result;
  const written = writerOf(result, widget, place);
  const added = addedCurrencyAt(result, widget);
  const shown = result.columns.map((column, index) => ({ column, index })).filter(({ index }) => index !== added);
  const columns = shown.map(({ column }) => column);
  const heads = columns.map((column) => element('th', { scope: 'col', ...align(column) }, foreign(head(column))));
  const lines = rows.map((row) => {
    const href = links(groupsOf(result, row));
    return element(
      'tr',
      {},
      ...shown.map(({ column, index }, at) => {
        const cell = linked(written(row, index), at === 0 ? href : null);
        const first = index === 0 && column.role === 'dimension';
        return first ? element('th', { scope: 'row' }, cell) : element('td', align(column), cell);
      }),
    );
  });
  const parts = [
    caption(widget.title),
    element('thead', {}, element('tr', {}, ...heads)),
    element('tbody', {}, ...lines),
  ];
  if (totals && columns[0]?.role === 'dimension') parts.push(element('tfoot', {}, totalsRow(columns, totals, place)));
  return scrolled(widget.title, element('table', {}, ...parts));
}

/**
 * @param {Column[]} columns
 * @param {Record<string, unknown>} totals
 * @param {Place} place
 */
const totalsRow = (columns, totals, place) =>
  element(
    'tr',
    {},
    ...columns.map((column, index) => {
      if (index === 0) return element('th', { scope: 'row' }, say('total'));
      const value = totals[column.key];
      return element(
        'td',
        align(column),
        column.role === 'measure' && value !== undefined ? text(value, column, place) : '',
      );
    }),
  );

/**
 * @param {Widget} widget
 * @param {WidgetResult} result
 * @param {Place} place
 * @param {Links} links
 */
export function pivotTable(widget, result, place, links) {
  const { corner, heads, lines } = pivot(result, widget, place);
  const columns = [...heads.keys()];
  const head = element(
    'tr',
    {},
    element('th', { scope: 'col' }, foreign(corner)),
    ...[...heads.values()].map((label) => element('th', { scope: 'col', class: 'figure' }, foreign(label))),
  );
  const body = lines.map(({ label, groups, cells }) =>
    element(
      'tr',
      {},
      element('th', { scope: 'row' }, linked(label, links(groups))),
      ...columns.map((key) => {
        const cell = cells.get(key);
        return element('td', { class: 'figure' }, cell ? linked(cell.written, links(cell.groups)) : '–');
      }),
    ),
  );
  return scrolled(
    widget.title,
    element('table', {}, caption(widget.title), element('thead', {}, head), element('tbody', {}, ...body)),
  );
}

/**
 * A figure for each measure; for each of its rows where the API keeps currencies apart.
 * @param {Widget} widget
 * @param {WidgetResult} result
 * @param {Place} place
 * @param {Links} links
 */
export function figures(widget, result, place, links) {
  const { columns, rows } = result;
  const written = writerOf(result, widget, place);
  const columnOf = columnsOf(result);
  const added = addedCurrencyAt(result, widget);
  const dimensions = columns.filter(({ role }, index) => role === 'dimension' && index !== added).length;
  const alone = dimensions === 0 && columns.filter(({ role }) => role === 'measure').length === 1;
  const entries = rows.flatMap((row) => {
    const href = links(groupsOf(result, row));
    const name = columns.flatMap(({ role }, index) => (role === 'dimension' ? [written(row, index)] : [])).join(' · ');
    return columns.flatMap(({ role, label }, index) => {
      if (role !== 'measure') return [];
      const value = numeric(row[index]);
      const full = written(row, index);
      // A figure that does not fit is shortened, and written in full below.
      const short =
        value !== null && full.length > FIGURE_MAX ? number(value, columnOf(row, index), place, { short: true }) : full;
      const named = [name, label].filter(Boolean);
      const parts = [element('span', { class: 'big' }, linked(short, href))];
      if (short !== full) parts.push(element('span', { class: 'full' }, foreign(full)));
      // The title of the widget names its one figure, and an amount its currency.
      const term = element('dt', { class: alone ? 'visually-hidden' : '' }, foreign(named.join(' · ')));
      return [element('div', { class: 'figure-of' }, term, element('dd', {}, ...parts))];
    });
  });
  return element('dl', { class: 'figures' }, ...entries);
}
