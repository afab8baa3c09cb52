/**
 * One widget: asks for its result and shows it, while it waits, and when it fails. What the person may not see and what
 * was left out is said below.
 */
import { CallFailed, call, inTurn } from './api.js';
import { chartOf, draw, KINDS } from './chart.js';
import { button, element, fill, foreign } from './elements.js';
import { moment } from './format.js';
import { named } from './result.js';
import { figures, pivotTable, table } from './tables.js';

/** @import { Dashboard, FilterValue, Place, Widget, WidgetResult } from './types.d.ts' */

/**
 * @typedef {object} Asked
 * @property {Record<string, FilterValue> | undefined} filterValues
 * @property {boolean} fresh kept results do not do
 * @property {AbortSignal} signal
 */

/** A widget on the page. */
export class WidgetView {
  /** @type {{ destroy(): void } | null} */
  #drawn = null;
  /** @type {WidgetResult | null} */
  #result = null;
  /** The person has asked for the table. */
  #asTable = false;
  #body = element('div', { class: 'body' });
  #notes = element('div', { class: 'notes' });
  #toggle;

  /**
   * @param {Dashboard} dashboard
   * @param {Widget} widget
   * @param {Place} place
   */
  constructor(dashboard, widget, place) {
    this.dashboard = dashboard;
    this.widget = widget;
    this.place = place;
    const heading = `widget-${widget.widgetKey}`;
    const title = element('h2', { id: heading }, foreign(widget.title));
    this.#toggle = button('Table', () => this.#switch(), { class: 'toggle', hidden: true });
    const head = element('div', { class: 'head' }, title, this.#toggle);
    const { x, w, h } = widget.layout;
    this.section = element(
      'section',
      { class: `widget kind-${widget.type}`, 'aria-labelledby': heading },
      ...(widget.type === 'text' && widget.title === '' ? [] : [head]),
      this.#body,
      this.#notes,
    );
    const { style } = this.section;
    style.setProperty('--x', String(x + 1));
    style.setProperty('--w', String(Math.min(w, 12 - x)));
    style.setProperty('--h', String(h));
  }

  /**
   * Asks and shows; resolves when something is shown.
   * @param {Asked} asked
   * @returns {Promise<'shown' | 'failed' | 'replaced'>}
   */
  async run(asked) {
    if (this.widget.type === 'text') {
      fill(this.#body, ...paragraphs(this.widget.options['text']));
      return 'shown';
    }
    this.#wait();
    try {
      this.#result = named(await this.#ask(asked), this.widget);
      this.show();
      return 'shown';
    } catch (error) {
      if (asked.signal.aborted) return 'replaced';
      if (!(error instanceof CallFailed)) throw error;
      this.#fail(error, asked);
      return 'failed';
    } finally {
      if (!asked.signal.aborted) this.section.removeAttribute('aria-busy');
    }
  }

  /** Shows the result that is there, in the colours of the moment. */
  show() {
    const result = this.#result;
    if (!result) return;
    this.#drawn?.destroy();
    this.#drawn = null;
    const { widget, place } = this;
    const drawable = KINDS.has(widget.type);
    const empty = result.rows.length === 0;
    this.#toggle.hidden = !drawable || empty;
    if (empty) fill(this.#body, element('p', { class: 'empty' }, 'There is nothing to show.'));
    else if (widget.type === 'metric') fill(this.#body, figures(widget, result, place));
    else if (widget.type === 'pivot') fill(this.#body, pivotTable(widget, result, place));
    else if (!drawable || this.#asTable) fill(this.#body, table(widget, result, place));
    else {
      const chart = chartOf(widget, result, place);
      const canvas = element('canvas', { role: 'img', 'aria-label': chart.label });
      fill(this.#body, element('div', { class: 'plot' }, canvas));
      // First, for they take of its height.
      this.#say(result, chart.left);
      this.#drawn = draw(/** @type {HTMLCanvasElement} */ (canvas), widget, chart, place);
      return;
    }
    this.#say(result, 0);
  }

  /** The result that is shown; null: none yet. */
  get result() {
    return this.#result;
  }

  /** Frees what the chart holds. */
  close() {
    this.#drawn?.destroy();
    this.#drawn = null;
  }

  /**
   * @param {Asked} asked
   * @returns {Promise<WidgetResult>}
   */
  #ask({ filterValues, fresh, signal }) {
    const { dashboardId, version } = this.dashboard;
    const body = { version, ...(filterValues ? { filterValues } : {}), ...(fresh ? { maxAgeSeconds: 0 } : {}) };
    const path = `/analytics/dashboards/${dashboardId}/widgets/${this.widget.widgetKey}/run`;
    return inTurn(() => call(path, { body, signal }));
  }

  #wait() {
    this.section.setAttribute('aria-busy', 'true');
    // What is there stays until it is replaced.
    if (this.#result) return;
    fill(this.#body, element('p', { class: 'waiting' }, 'Loading…'));
  }

  /**
   * @param {CallFailed} error
   * @param {Asked} asked
   */
  #fail(error, asked) {
    this.close();
    this.#result = null;
    this.#toggle.hidden = true;
    fill(
      this.#body,
      element(
        'div',
        { class: 'problem' },
        element('h3', {}, 'This widget cannot be shown'),
        element('p', {}, foreign(error.message), ' ', element('code', {}, error.code)),
        button('Try again', () => void this.run({ ...asked, fresh: true })),
      ),
    );
    fill(this.#notes);
  }

  #switch() {
    this.#asTable = !this.#asTable;
    this.#toggle.textContent = this.#asTable ? 'Chart' : 'Table';
    this.show();
  }

  /**
   * @param {WidgetResult} result
   * @param {number} left
   */
  #say(result, left) {
    const { rows, rowCount, truncated, accessNotes, computedAt } = result;
    const notes = accessNotes.map(({ message }) => element('p', { class: 'note' }, foreign(message)));
    if (truncated) {
      const of = rowCount > rows.length ? ` of ${rowCount}` : '';
      notes.unshift(element('p', { class: 'note' }, `Shows the first ${rows.length}${of} rows; there are more.`));
    }
    if (left > 0)
      notes.unshift(
        element('p', { class: 'note' }, `${left} more series are in the table, which the chart leaves out.`),
      );
    const at = element('time', { datetime: computedAt }, moment(computedAt, this.place));
    fill(this.#notes, ...notes, element('p', { class: 'age' }, 'As of ', at));
  }
}

/** @param {unknown} text */
const paragraphs = (text) =>
  (typeof text === 'string' ? text : '')
    .split(/\n{2,}/)
    .map((part) => element('p', { class: 'words', dir: 'auto' }, part));
