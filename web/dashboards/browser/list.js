/** The dashboards that the user may see. */
import { call } from '../../shared/api.js';
import { element, fill, foreign } from '../../shared/elements.js';
import { moment } from '../../shared/format.js';
import { say } from './words.js';

/** @import { Place, View } from '../../shared/types.d.ts' */
/** @import { DashboardList, DashboardSummary } from './types.d.ts' */

const SCOPES = /** @type {const} */ (['all', 'mine', 'shared', 'public']);
const PAGE_SIZE = 25;

/**
 * @param {HTMLElement} main
 * @param {() => Promise<Place>} place
 * @param {(address: string) => void} go
 * @returns {Promise<View>}
 */
export async function showList(main, place, go) {
  const address = new URLSearchParams(location.search);
  const scope = SCOPES.find((name) => name === address.get('scope')) ?? 'all';
  const search = (address.get('search') ?? '').trim().slice(0, 100);
  const page = Math.max(1, Math.min(10_000, Math.trunc(Number(address.get('page') ?? 1)) || 1));
  const query = new URLSearchParams({
    scope,
    page: String(page),
    pageSize: String(PAGE_SIZE),
    ...(search ? { search } : {}),
  });
  const [list, where] = await Promise.all([
    /** @type {Promise<DashboardList>} */ (call(`/analytics/dashboards?${query}`)),
    place(),
  ]);
  /** @param {Record<string, string>} changes */
  const linked = (changes) => {
    const next = new URLSearchParams({ scope, ...(search ? { search } : {}), ...changes });
    return `/dashboards?${next}`;
  };
  const pages = Math.max(1, Math.ceil(list.total / PAGE_SIZE));
  fill(
    main,
    element('h1', { tabindex: '-1' }, say('dashboards')),
    controls(scope, search, linked, go),
    list.records.length === 0
      ? emptiness(search !== '')
      : element('ul', { class: 'dashboards' }, ...list.records.map((one) => entry(one, where))),
    ...(pages > 1 ? [pager(page, pages, linked)] : []),
  );
  return { title: say('dashboards') };
}

/**
 * @param {string} scope
 * @param {string} search
 * @param {(changes: Record<string, string>) => string} linked
 * @param {(address: string) => void} go
 */
function controls(scope, search, linked, go) {
  const tabs = SCOPES.map((name) =>
    element(
      'a',
      { href: linked({ scope: name }), ...(name === scope ? { 'aria-current': 'page' } : {}) },
      say('scopes')[name],
    ),
  );
  const input = element('input', {
    ...{ type: 'search', name: 'search', id: 'search', value: search, maxlength: '100', 'aria-label': say('search') },
  });
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    const typed = /** @type {HTMLInputElement} */ (input).value.trim();
    go(`/dashboards?${new URLSearchParams({ scope, ...(typed ? { search: typed } : {}) })}`);
  };
  return element(
    'div',
    { class: 'controls' },
    element('nav', { class: 'tabs', 'aria-label': say('whichDashboards') }, ...tabs),
    element(
      'form',
      { role: 'search', class: 'search', submit },
      input,
      element('button', { type: 'submit', class: 'quiet small' }, say('search')),
    ),
  );
}

/** @param {boolean} searched */
const emptiness = (searched) =>
  element(
    'div',
    { class: 'empty card' },
    element('h2', {}, say(searched ? 'noMatch' : 'noDashboards')),
    element('p', {}, say(searched ? 'noMatchHint' : 'noDashboardsHint')),
    element(
      'p',
      { class: 'actions' },
      searched
        ? element('a', { href: '/dashboards' }, say('allDashboards'))
        : element('a', { href: '/app' }, say('openRecords')),
    ),
  );

/**
 * @param {DashboardSummary} dashboard
 * @param {Place} place
 */
function entry({ dashboardId, name, description, state, updatedAt, widgetCount }, place) {
  const badge = state === 'draft' ? [element('span', { class: 'badge' }, say('draft'))] : [];
  return element(
    'li',
    {},
    element('h2', {}, element('a', { href: `/dashboards/${dashboardId}` }, foreign(name)), ...badge),
    ...(description ? [element('p', { dir: 'auto' }, description)] : []),
    element(
      'p',
      { class: 'age' },
      `${say('widgets')(widgetCount)} · ${say('changed')} `,
      element('time', { datetime: updatedAt }, moment(updatedAt, place)),
    ),
  );
}

/**
 * @param {number} page
 * @param {number} pages
 * @param {(changes: Record<string, string>) => string} linked
 */
const pager = (page, pages, linked) =>
  element(
    'nav',
    { class: 'pager', 'aria-label': say('pages') },
    ...(page > 1 ? [element('a', { href: linked({ page: String(page - 1) }) }, say('previous'))] : []),
    element('span', {}, say('pageOf')(page, pages)),
    ...(page < pages ? [element('a', { href: linked({ page: String(page + 1) }) }, say('next'))] : []),
  );
