/**
 * One widget: asks for its result and shows it, while it waits, and when it fails. What the person may not see and what
 * was left out is said below.
 */
import { CallFailed, call, inTurn } from '../../shared/api.js';
import { announce, button, element, fill, foreign } from '../../shared/elements.js';
import { common } from '../../shared/words.js';
import { chartOf, draw } from './chart.js';
import { withoutEffect } from './filters.js';
import { recordLinks } from './records.js';
import { continued, KINDS, named, WRITTEN_KINDS } from './result.js';
import { figures, pivotTable, table } from './tables.js';
import { say } from './words.js';

/** @import { Place } from '../../shared/types.d.ts' */
/** @import { Links } from './tables.js' */
/** @import { Catalog, Dashboard, FilterValue, Widget, WidgetResult } from './types.d.ts' */

/**
 * @typedef {object} Asked
 * @property {Record<string, FilterValue> | undefined} filterValues
 * @property {boolean} fresh kept results do not do
 * @property {AbortSignal} signal
 */

/** Rows after which no further page is added: writing a longer table takes the browser more than a second. */
const ROWS_MAX = 5_000;
const ROWS_RESTRICTED = 'ROWS_RESTRICTED';

/** A widget on the page. */
export class WidgetView {
  /** @type {{ destroy(): void } | null} */
  #drawn = null;
  /** @type {WidgetResult | null} */
  #result = null;
  /** The query of the result. @type {Asked | null} */
  #asked = null;
  /** @type {Links} */
  #links = () => null;
  /** Announcement about the rows; empty: none. */
  #news = '';
  /** The person has asked for the table. */
  #asTable = false;
  #body = element('div', { class: 'body' });
  #notes = element('div', { class: 'notes' });
  #toggle;
  #more = button(common('showMore'), () => void this.#continue(), { class: 'quiet small more', hidden: true });

  /**
   * @param {Dashboard} dashboard
   * @param {Widget} widget
   * @param {Place} place
   * @param {(objectApiName: string) => Promise<Catalog>} catalogOf
   * @param {(message: string) => void} restricted hears that rows were left out, which holds for the dashboard as a whole
   */
  constructor(dashboard, widget, place, catalogOf, restricted) {
    this.dashboard = dashboard;
    this.widget = widget;
    this.place = place;
    this.catalogOf = catalogOf;
    this.restricted = restricted;
    const heading = `widget-${widget.widgetKey}`;
    const title = element('h2', { id: heading }, foreign(widget.title));
    this.#toggle = button(say('tableButton'), () => this.#switch(), { class: 'toggle', hidden: true });
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
      this.#links = this.#linksBy(asked, new Map());
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

  /**
   * @param {Asked} asked
   * @param {ReadonlyMap<string, string>} types
   */
  #linksBy({ filterValues }, types) {
    const { dashboard, place } = this;
    return recordLinks(this.widget, { dashboard, filterValues, types, timezone: place.timezone });
  }

  /**
   * Leads from periods to their records, too. The result does not say whether these are days or moments. The
   * catalog of its object does, which is read after the results are shown, so that it delays none.
   */
  async linkPeriods() {
    const { query } = this.widget;
    const asked = this.#asked;
    if (!asked || !query?.dimensions.some(({ granularity }) => granularity)) return;
    const { dimensions } = await this.catalogOf(query.objectApiName);
    if (asked !== this.#asked || asked.signal.aborted) return;
    this.#links = this.#linksBy(asked, new Map(dimensions.map(({ field, fieldType }) => [field, fieldType])));
    this.show();
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
      fill(this.#body, element('p', { class: 'empty' }, say('unknownKind')));
    else if (empty) fill(this.#body, this.#emptiness());
    else if (widget.type === 'metric') fill(this.#body, figures(widget, result, place, this.#links));
    else if (widget.type === 'pivot') fill(this.#body, pivotTable(widget, result, place, this.#links));
    else if (!drawable || this.#asTable) fill(this.#body, table(widget, result, place, this.#links));
    else {
      const chart = chartOf(widget, result, place, this.#links);
      const canvas = element('canvas', {
        // A screen reader leaves the arrow keys to an application.
        role: 'application',
        'aria-roledescription': say('chart'),
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
      else await this.run({ ...asked, fresh: true }, say('begunAnew'));
    } catch (error) {
      if (asked.signal.aborted) return;
      if (!(error instanceof CallFailed)) throw error;
      if (error.code.startsWith('CURSOR_')) await this.run({ ...asked, fresh: true }, say('begunAnew'));
      else this.#add(result, say('nextFailed')(error.message));
    } finally {
      if (!asked.signal.aborted) this.section.removeAttribute('aria-busy');
    }
    if (asked.signal.aborted) return;
    this.#body.querySelector('.table')?.scrollTo({ top: this.#news === say('begunAnew') ? 0 : scrolledTo });
    if (hadFocus && this.#more.hidden) this.#focusBody();
    this.#tell();
  }

  /** Announces the rows to a screen reader. */
  #tell() {
    const parts = [this.#result ? `${shownOf(this.#result)}.` : say('cannotTell'), this.#news];
    if (!this.#more.hidden && this.#news === '') parts.push(say('canAdd'));
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

  #emptiness() {
    const href = this.#links([]);
    return element(
      'p',
      { class: 'empty' },
      say('nothing'),
      ...(href ? [' ', element('a', { href }, say('records'))] : []),
    );
  }

  #focusBody() {
    const target = this.#body.querySelector('.table, canvas, button');
    if (target instanceof HTMLElement) target.focus({ preventScroll: true });
  }

  #wait() {
    this.section.setAttribute('aria-busy', 'true');
    // The present rows stay until they are replaced.
    if (this.#result) return;
    fill(this.#body, element('p', { class: 'waiting' }, common('loading')));
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
        element('h3', {}, say('failed')),
        element('p', {}, foreign(error.message), ' ', element('code', {}, error.code)),
        error.passes
          ? button(common('tryAgain'), () => void this.run({ ...asked, fresh: true }))
          : element('p', {}, error.status === 403 ? common('askAdministrator') : say('askEditor')),
      ),
    );
    fill(this.#notes);
  }

  #switch() {
    this.#asTable = !this.#asTable;
    this.#toggle.textContent = say(this.#asTable ? 'chartButton' : 'tableButton');
    this.show();
  }

  /**
   * @param {WidgetResult} result
   * @param {number} left
   */
  #say(result, left) {
    const { rows, truncated, nextCursor, accessNotes } = result;
    this.#more.hidden = !nextCursor || rows.length >= ROWS_MAX;
    const notes = [];
    for (const { code, message } of accessNotes)
      if (code === ROWS_RESTRICTED) this.restricted(message);
      else notes.push(element('p', { class: 'note' }, foreign(message)));
    if (truncated) notes.unshift(element('p', { class: 'note' }, say('firstRows')(shownOf(result))));
    const idle = withoutEffect(this.dashboard.filters, this.#asked?.filterValues, this.widget);
    if (idle.length > 0)
      notes.unshift(element('p', { class: 'note', dir: 'auto' }, say('notFilteredBy')(idle.join(', '))));
    if (this.#news !== '') notes.unshift(element('p', { class: 'note' }, this.#news));
    if (left > 0) notes.unshift(element('p', { class: 'note' }, say('seriesLeft')(left)));
    fill(this.#notes, ...notes);
  }
}

/** @param {WidgetResult} result */
const shownOf = ({ rows, rowCount }) => say('rows')(rows.length, rowCount);

/** @param {unknown} text */
const paragraphs = (text) =>
  (typeof text === 'string' ? text : '')
    .split(/\n{2,}/)
    .map((part) => element('p', { class: 'words', dir: 'auto' }, part));
