/** The dashboards that the user may see. */
import { call } from '../../shared/api.js';
import { element, fill, foreign } from '../../shared/elements.js';
import { moment } from '../../shared/format.js';

/** @import { Place, View } from '../../shared/types.d.ts' */
/** @import { DashboardList, DashboardSummary } from './types.d.ts' */

const SCOPES = /** @type {const} */ ([
  ['all', 'All'],
  ['mine', 'Mine'],
  ['shared', 'Shared with me'],
  ['public', 'Public'],
]);
const PAGE_SIZE = 25;

/**
 * @param {HTMLElement} main
 * @param {() => Promise<Place>} place
 * @param {(address: string) => void} go
 * @returns {Promise<View>}
 */
export async function showList(main, place, go) {
  const address = new URLSearchParams(location.search);
  const scope = SCOPES.find(([name]) => name === address.get('scope'))?.[0] ?? 'all';
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
    element('h1', { tabindex: '-1' }, 'Dashboards'),
    controls(scope, search, linked, go),
    list.records.length === 0
      ? element('p', { class: 'empty' }, search ? 'No dashboard matches.' : 'There is no dashboard for you here.')
      : element('ul', { class: 'dashboards' }, ...list.records.map((one) => entry(one, where))),
    ...(pages > 1 ? [pager(page, pages, linked)] : []),
  );
  return { title: 'Dashboards' };
}

/**
 * @param {string} scope
 * @param {string} search
 * @param {(changes: Record<string, string>) => string} linked
 * @param {(address: string) => void} go
 */
function controls(scope, search, linked, go) {
  const tabs = SCOPES.map(([name, label]) =>
    element('a', { href: linked({ scope: name }), ...(name === scope ? { 'aria-current': 'page' } : {}) }, label),
  );
  const input = element('input', { type: 'search', name: 'search', id: 'search', value: search, maxlength: '100' });
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    const typed = /** @type {HTMLInputElement} */ (input).value.trim();
    go(`/dashboards?${new URLSearchParams({ scope, ...(typed ? { search: typed } : {}) })}`);
  };
  return element(
    'div',
    { class: 'controls' },
    element('nav', { class: 'tabs', 'aria-label': 'Which dashboards' }, ...tabs),
    element(
      'form',
      { role: 'search', class: 'search', submit },
      element('label', { for: 'search' }, 'Search'),
      input,
      element('button', { type: 'submit', class: 'small' }, 'Search'),
    ),
  );
}

/**
 * @param {DashboardSummary} dashboard
 * @param {Place} place
 */
function entry({ dashboardId, name, description, state, updatedAt, widgetCount }, place) {
  const badge = state === 'draft' ? [element('span', { class: 'badge' }, 'Draft')] : [];
  return element(
    'li',
    {},
    element('h2', {}, element('a', { href: `/dashboards/${dashboardId}` }, foreign(name)), ...badge),
    ...(description ? [element('p', { dir: 'auto' }, description)] : []),
    element(
      'p',
      { class: 'age' },
      `${widgetCount} ${widgetCount === 1 ? 'widget' : 'widgets'} · changed `,
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
    { class: 'pager', 'aria-label': 'Pages' },
    ...(page > 1 ? [element('a', { href: linked({ page: String(page - 1) }) }, 'Previous')] : []),
    element('span', {}, `Page ${page} of ${pages}`),
    ...(page < pages ? [element('a', { href: linked({ page: String(page + 1) }) }, 'Next')] : []),
  );
