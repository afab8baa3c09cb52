/** One dashboard: its widgets on a grid of twelve columns, all asked for at once. */
import { call } from '../../shared/api.js';
import { announce, button, element, fill, foreign } from '../../shared/elements.js';
import { knownTimezone, moment } from '../../shared/format.js';
import { common } from '../../shared/words.js';
import {
  catalogs,
  filterFields,
  filterForm,
  filterValues,
  isFiltered,
  offerChoices,
  unknownFilters,
} from './filters.js';
import { WidgetView } from './widget.js';
import { say } from './words.js';

/** @import { Place, View } from '../../shared/types.d.ts' */
/** @import { Dashboard, FilterFields } from './types.d.ts' */

const dark = matchMedia('(prefers-color-scheme: dark)');

/**
 * @param {HTMLElement} main
 * @param {string} dashboardId
 * @param {() => Promise<Place>} place
 * @param {(address: string) => void} go
 * @returns {Promise<View>}
 */
export async function showDashboard(main, dashboardId, place, go) {
  const address = new URLSearchParams(location.search);
  const version = address.get('version');
  const query = version === null ? '' : `?${new URLSearchParams({ version })}`;
  const [dashboard, own] = await Promise.all([
    /** @type {Promise<Dashboard>} */ (call(`/analytics/dashboards/${encodeURIComponent(dashboardId)}${query}`)),
    place(),
  ]);
  const { filters } = dashboard;
  // One clock for groups, moments and days that are chosen.
  const where = dashboard.timezone === null ? own : { ...own, timezone: knownTimezone(dashboard.timezone) };
  // In the order in which they are read on the grid; a phone and a screen reader go through them one by one.
  const widgets = dashboard.widgets.toSorted((a, b) => a.layout.y - b.layout.y || a.layout.x - b.layout.x);
  const form = element('div');
  const restriction = element('p', { class: 'note' });
  const restricted = (/** @type {string} */ message) => {
    fill(restriction, foreign(message));
    form.before(restriction);
  };
  const leaving = new AbortController();
  const catalogOf = catalogs(leaving.signal);
  const views = widgets.map((widget) => new WidgetView(dashboard, widget, where, catalogOf, restricted));
  const age = element('p', { class: 'age' });
  let asking = new AbortController();

  /** Said once, for the oldest result: all are asked for together. */
  const drawAge = () => {
    const [oldest] = views.flatMap(({ result }) => result?.computedAt ?? []).sort();
    fill(age, ...(oldest ? [`${say('asOf')} `, element('time', { datetime: oldest }, moment(oldest, where))] : []));
  };

  /** @param {FilterFields} fields @param {boolean} fresh */
  const run = async (fields, fresh) => {
    asking.abort();
    asking = new AbortController();
    const signal = AbortSignal.any([asking.signal, leaving.signal]);
    const values = filterValues(filters, fields, address, where.timezone);
    delete document.body.dataset['shown'];
    const outcomes = await Promise.all(views.map((view) => view.run({ filterValues: values, fresh, signal })));
    if (signal.aborted) return;
    const failed = outcomes.filter((outcome) => outcome === 'failed').length;
    drawAge();
    const shown = say('shownOf')(outcomes.length - failed, outcomes.length);
    announce(failed > 0 ? `${shown} ${say('failedToo')(failed)}` : shown);
    document.body.dataset['shown'] = String(outcomes.length - failed);
    await Promise.all(views.map((view) => view.linkPeriods()));
  };
  const fields = filters.length > 0 ? filterFields(filters, catalogOf) : Promise.resolve(new Map());
  const grid = element('div', { class: 'grid' }, ...views.map(({ section }) => section));
  const refresh = async () => run(await fields, true);
  const unknown = unknownFilters(filters, address);
  const notes = [
    ...(where.timezone === own.timezone ? [] : [say('timesOf')(where.timezone)]),
    ...(unknown.length > 0 ? [say('unknownFilters')(unknown.join(', '))] : []),
  ];
  fill(
    main,
    ...heading(dashboard, age, () => void refresh()),
    ...notes.map((note) => element('p', { class: 'note', dir: 'auto' }, note)),
    form,
    grid,
  );
  if (views.length === 0) grid.replaceWith(element('p', { class: 'empty card' }, say('noWidgets')));
  const repaint = () => {
    for (const view of views) view.show();
  };
  dark.addEventListener('change', repaint);
  const begin = async () => {
    // Only a value in the address has to wait until its kind is known.
    const ran = isFiltered(filters, address) ? fields.then((known) => run(known, false)) : run(new Map(), false);
    if (filters.length > 0) {
      fill(
        form,
        filterForm(filters, await fields, address, (next) => go(location.pathname + search(next))),
      );
      await ran;
      offerChoices(form, filters, views);
    }
    await ran;
  };
  return {
    title: dashboard.name,
    ran: begin(),
    close: () => {
      leaving.abort();
      dark.removeEventListener('change', repaint);
      for (const view of views) view.close();
    },
  };
}

/** @param {URLSearchParams} parameters */
const search = (parameters) => (parameters.size > 0 ? `?${parameters}` : '');

/**
 * @param {Dashboard} dashboard
 * @param {HTMLElement} age
 * @param {() => void} refresh
 */
function heading({ name, description, version, state }, age, refresh) {
  const badge = version === 'draft' ? [element('span', { class: 'badge' }, say('draft'))] : [];
  const changed =
    version === 'published' && state === 'modified' ? [element('p', { class: 'note' }, say('unpublished'))] : [];
  return [
    element(
      'nav',
      { class: 'trail', 'aria-label': common('whereYouAre') },
      element('a', { href: '/dashboards' }, say('dashboards')),
    ),
    element(
      'div',
      { class: 'title' },
      element('h1', { tabindex: '-1' }, foreign(name), ...badge),
      element('div', { class: 'actions' }, age, button(say('refresh'), refresh, { class: 'quiet small' })),
    ),
    ...(description ? [element('p', { class: 'lead', dir: 'auto' }, description)] : []),
    ...changed,
  ];
}
