/** One dashboard: its widgets on a grid of twelve columns, all asked for at once. */
import { call } from '../../shared/api.js';
import { announce, button, element, fill, foreign } from '../../shared/elements.js';
import { knownTimezone } from '../../shared/format.js';
import { filterFields, filterForm, filterValues, isFiltered, offerChoices, unknownFilters } from './filters.js';
import { WidgetView } from './widget.js';

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
  const views = widgets.map((widget) => new WidgetView(dashboard, widget, where, restricted));
  const leaving = new AbortController();
  let asking = new AbortController();

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
    const shown = `${outcomes.length - failed} of ${outcomes.length} widgets are shown.`;
    announce(failed > 0 ? `${shown} ${failed} failed.` : shown);
    document.body.dataset['shown'] = String(outcomes.length - failed);
  };
  const fields = filters.length > 0 ? filterFields(filters, leaving.signal) : Promise.resolve(new Map());
  const grid = element('div', { class: 'grid' }, ...views.map(({ section }) => section));
  const refresh = async () => run(await fields, true);
  const unknown = unknownFilters(filters, address);
  const notes = [
    ...(where.timezone === own.timezone ? [] : [`Days and times are those of ${where.timezone}.`]),
    ...(unknown.length > 0 ? [`This dashboard has no filter ${unknown.join(', ')}, which the address names.`] : []),
  ];
  fill(
    main,
    ...heading(dashboard, () => void refresh()),
    ...notes.map((note) => element('p', { class: 'note', dir: 'auto' }, note)),
    form,
    grid,
  );
  if (views.length === 0) grid.replaceWith(element('p', { class: 'empty' }, 'This dashboard has no widgets yet.'));
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
 * @param {() => void} refresh
 */
function heading({ name, description, version, state }, refresh) {
  const badge = version === 'draft' ? [element('span', { class: 'badge' }, 'Draft')] : [];
  const changed =
    version === 'published' && state === 'modified'
      ? [element('p', { class: 'note' }, 'There are changes that are not published yet.')]
      : [];
  return [
    element(
      'nav',
      { class: 'crumbs', 'aria-label': 'Where you are' },
      element('a', { href: '/dashboards' }, 'Dashboards'),
    ),
    element(
      'div',
      { class: 'title' },
      element('h1', { tabindex: '-1' }, foreign(name), ...badge),
      button('Refresh', refresh, { class: 'small' }),
    ),
    ...(description ? [element('p', { class: 'lead', dir: 'auto' }, description)] : []),
    ...changed,
  ];
}
