/**
 * One widget: asks for its result and shows it, while it waits, and when it fails. What the person may not see and what
 * was left out is said below.
 */
import { CallFailed, call, inTurn } from '../../shared/api.js';
import { announce, button, element, fill, foreign } from '../../shared/elements.js';
import { moment } from '../../shared/format.js';
import { chartOf, draw } from './chart.js';
import { withoutEffect } from './filters.js';
import { continued, KINDS, named, WRITTEN_KINDS } from './result.js';
import { figures, pivotTable, table } from './tables.js';

/** @import { Place } from '../../shared/types.d.ts' */
/** @import { Dashboard, FilterValue, Widget, WidgetResult } from './types.d.ts' */

/**
 * @typedef {object} Asked
 * @property {Record<string, FilterValue> | undefined} filterValues
 * @property {boolean} fresh kept results do not do
 * @property {AbortSignal} signal
 */

/** Rows after which no further page is added: writing a longer table takes the browser more than a second. */
const ROWS_MAX = 5_000;
const BEGUN_ANEW = 'The list could not be continued where it ended, so it begins anew.';
const ROWS_RESTRICTED = 'ROWS_RESTRICTED';
const ADMINISTRATOR = 'An administrator of your company can change that.';
const EDITOR = 'The owner of the dashboard or an administrator has to correct it.';

/** A widget on the page. */
export class WidgetView {
  /** @type {{ destroy(): void } | null} */
  #drawn = null;
  /** @type {WidgetResult | null} */
  #result = null;
  /** The query of the result. @type {Asked | null} */
  #asked = null;
  /** Announcement about the rows; empty: none. */
  #news = '';
  /** The person has asked for the table. */
  #asTable = false;
  #body = element('div', { class: 'body' });
  #notes = element('div', { class: 'notes' });
  #toggle;
  #more = button('Show more', () => void this.#continue(), { class: 'small more', hidden: true });

  /**
   * @param {Dashboard} dashboard
   * @param {Widget} widget
   * @param {Place} place
   * @param {(message: string) => void} restricted hears that rows were left out, which holds for the dashboard as a whole
   */
  constructor(dashboard, widget, place, restricted) {
    this.dashboard = dashboard;
    this.widget = widget;
    this.place = place;
    this.restricted = restricted;
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
      this.#more,
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
   * @param {string} [news] a sentence to show with the rows
   * @returns {Promise<'shown' | 'failed' | 'replaced'>}
   */
  async run(asked, news = '') {
    if (this.widget.type === 'text') {
      fill(this.#body, ...paragraphs(this.widget.options['text']));
      return 'shown';
    }
    this.#wait();
    try {
      this.#result = named(await this.#ask(asked, null), this.widget);
      this.#asked = asked;
      this.#news = news;
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
    const hadFocus = this.#body.contains(document.activeElement);
    this.#show(result);
    if (hadFocus) this.#focusBody();
  }

  /** @param {WidgetResult} result */
  #show(result) {
    this.#drawn?.destroy();
    this.#drawn = null;
    const { widget, place } = this;
    const drawable = KINDS.has(widget.type);
    const empty = result.rows.length === 0;
    this.#toggle.hidden = !drawable || empty;
    if (!drawable && !WRITTEN_KINDS.has(widget.type))
      fill(this.#body, element('p', { class: 'empty' }, 'This page does not know how to show this kind of widget.'));
    else if (empty) fill(this.#body, element('p', { class: 'empty' }, 'There is nothing to show.'));
    else if (widget.type === 'metric') fill(this.#body, figures(widget, result, place));
    else if (widget.type === 'pivot') fill(this.#body, pivotTable(widget, result, place));
    else if (!drawable || this.#asTable) fill(this.#body, table(widget, result, place));
    else {
      const chart = chartOf(widget, result, place);
      const canvas = element('canvas', {
        // A screen reader leaves the arrow keys to an application.
        role: 'application',
        'aria-roledescription': 'chart',
        'aria-label': chart.label,
        tabindex: '0',
      });
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
   * @param {string | null} cursor null: the first page
   * @returns {Promise<WidgetResult>}
   */
  #ask({ filterValues, fresh, signal }, cursor) {
    const { dashboardId, version } = this.dashboard;
    const body = {
      version,
      ...(filterValues ? { filterValues } : {}),
      ...(fresh ? { maxAgeSeconds: 0 } : {}),
      ...(cursor === null ? {} : { cursor }),
    };
    const path = `/analytics/dashboards/${dashboardId}/widgets/${this.widget.widgetKey}/run`;
    return inTurn(() => call(path, { body, signal }));
  }

  /** Adds the next page to the rows. Focus and scrolling stay as they are while there is another one. */
  async #continue() {
    const [asked, result] = [this.#asked, this.#result];
    if (!asked || !result?.nextCursor || this.section.hasAttribute('aria-busy')) return;
    const hadFocus = document.activeElement === this.#more;
    const scrolledTo = this.#body.querySelector('.table')?.scrollTop ?? 0;
    this.#wait();
    try {
      const next = named(await this.#ask(asked, result.nextCursor), this.widget);
      const all = continued(result, next);
      if (all) this.#add(all);
      else await this.run({ ...asked, fresh: true }, BEGUN_ANEW);
    } catch (error) {
      if (asked.signal.aborted) return;
      if (!(error instanceof CallFailed)) throw error;
      if (error.code.startsWith('CURSOR_')) await this.run({ ...asked, fresh: true }, BEGUN_ANEW);
      else this.#add(result, `There was a problem with the next rows: ${error.message}`);
    } finally {
      if (!asked.signal.aborted) this.section.removeAttribute('aria-busy');
    }
    if (asked.signal.aborted) return;
    this.#body.querySelector('.table')?.scrollTo({ top: this.#news === BEGUN_ANEW ? 0 : scrolledTo });
    if (hadFocus && this.#more.hidden) this.#focusBody();
    this.#tell();
  }

  /** Announces the rows to a screen reader. */
  #tell() {
    const parts = [this.#result ? `${shownOf(this.#result)}.` : 'this widget cannot be shown.', this.#news];
    if (!this.#more.hidden && this.#news === '') parts.push('Further rows can be added.');
    announce(`${this.widget.title}: ${parts.filter(Boolean).join(' ')}`);
  }

  /**
   * @param {WidgetResult} result
   * @param {string} [news]
   */
  #add(result, news = '') {
    this.#result = result;
    this.#news = news;
    this.show();
  }

  #focusBody() {
    const target = this.#body.querySelector('.table, canvas, button');
    if (target instanceof HTMLElement) target.focus({ preventScroll: true });
  }

  #wait() {
    this.section.setAttribute('aria-busy', 'true');
    // The present rows stay until they are replaced.
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
    this.#more.hidden = true;
    fill(
      this.#body,
      element(
        'div',
        { class: 'problem' },
        element('h3', {}, 'This widget cannot be shown'),
        element('p', {}, foreign(error.message), ' ', element('code', {}, error.code)),
        error.passes
          ? button('Try again', () => void this.run({ ...asked, fresh: true }))
          : element('p', {}, error.status === 403 ? ADMINISTRATOR : EDITOR),
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
    const { rows, truncated, nextCursor, accessNotes, computedAt } = result;
    this.#more.hidden = !nextCursor || rows.length >= ROWS_MAX;
    const notes = [];
    for (const { code, message } of accessNotes)
      if (code === ROWS_RESTRICTED) this.restricted(message);
      else notes.push(element('p', { class: 'note' }, foreign(message)));
    if (truncated)
      notes.unshift(element('p', { class: 'note' }, `Shows the first ${shownOf(result)}; there are more.`));
    const idle = withoutEffect(this.dashboard.filters, this.#asked?.filterValues, this.widget);
    if (idle.length > 0)
      notes.unshift(element('p', { class: 'note', dir: 'auto' }, `Not filtered by ${idle.join(', ')}.`));
    if (this.#news !== '') notes.unshift(element('p', { class: 'note' }, this.#news));
    if (left > 0)
      notes.unshift(
        element('p', { class: 'note' }, `${left} more series are in the table, which the chart leaves out.`),
      );
    const at = element('time', { datetime: computedAt }, moment(computedAt, this.place));
    fill(this.#notes, ...notes, element('p', { class: 'age' }, 'As of ', at));
  }
}

/** @param {WidgetResult} result */
const shownOf = ({ rows, rowCount }) => `${rows.length}${rowCount > rows.length ? ` of ${rowCount}` : ''} rows`;

/** @param {unknown} text */
const paragraphs = (text) =>
  (typeof text === 'string' ? text : '')
    .split(/\n{2,}/)
    .map((part) => element('p', { class: 'words', dir: 'auto' }, part));
