/** A list of records. What it shows stands in its address, so that it can be shared, reloaded and returned to. */
import { CallFailed } from '../../shared/api.js';
import { announce, button, element, fill, foreign } from '../../shared/elements.js';
import { failureBox } from '../../shared/failure.js';
import { chips, filterPanel } from './filters.js';
import { addressOf, defaultColumns, fieldsOf, isReference, isSortable, query, typeOf } from './objects.js';
import { selectionOf } from './selection.js';
import { ROWS_MAX, saveList } from './spreadsheet.js';
import { isNumber, nameOf, shown } from './values.js';
import { say } from './words.js';

/** @import { Person, View } from '../../shared/types.d.ts' */
/** @import { Field, Filters, ListView, ObjectType, RecordData, Sort } from './types.d.ts' */

const PAGE_SIZE = 50;
const TYPING_MS = 300;
const SEARCH_MIN = 2;

/**
 * @typedef {object} State
 * @property {ListView | null} view
 * @property {string} search
 * @property {Filters | null} filters null: those of the view
 * @property {Sort[] | null} sort null: that of the view
 */

/**
 * @param {string} apiName
 * @param {Person} person
 * @returns {Promise<View>}
 */
export async function showList(apiName, person) {
  const type = await typeOf(apiName);
  const state = stateOf(type);
  const columns = () => columnsOf(type, state.view);
  const filters = () => state.filters ?? state.view?.filters ?? null;
  const order = () => state.sort ?? state.view?.sort ?? [];
  let reading = new AbortController();
  /** @type {string | null} */
  let cursor = null;
  let count = 0;
  /** @type {number | null} */
  let total = null;

  const picked = selectionOf(type, person, () => void load());
  /** @param {RecordData} record */
  const drawn = (record) => row(record, columns(), person, type, picked.offered ? [picked.cell(record)] : []);
  const body = element('tbody', { role: 'rowgroup' });
  const head = element('thead', { role: 'rowgroup' });
  const table = element('table', { class: 'records', role: 'table', 'aria-label': type.labelPlural }, head, body);
  const place = element('div', { class: 'list' });
  const said = element('div', { class: 'said' });
  const figures = element('span', {});
  const countAll = button(say('count'), () => void readTotal(), { class: 'quiet small' });
  const download = button(say('downloadCsv'), () => void saveAsCsv(), { class: 'quiet small' });
  const footer = element('p', { class: 'actions figures', hidden: true }, figures, countAll, download);
  const more = button(say('showMore'), () => void readMore(true), { class: 'quiet small more', hidden: true });
  const active = element('div', { class: 'chips' });
  const panel = element('div', {});

  const asked = () => ({
    ...(filters()?.conditions.length ? { filters: filters() } : {}),
    ...(order().length > 0 ? { sort: order() } : {}),
    ...(state.search.length >= SEARCH_MIN ? { search: state.search } : {}),
  });

  /** @param {Partial<State>} next */
  const change = (next, replace = false) => {
    Object.assign(state, next);
    history[replace ? 'replaceState' : 'pushState'](null, '', addressOfState(type, state));
    void load();
  };

  const load = async () => {
    reading.abort();
    reading = new AbortController();
    const { signal } = reading;
    total = null;
    picked.reset();
    drawHead();
    drawChips();
    fill(said);
    place.setAttribute('aria-busy', 'true');
    delete document.body.dataset['shown'];
    try {
      const fields = columns();
      const page = await query(type, fields, { take: PAGE_SIZE, includeEtag: true, ...asked() }, signal);
      fill(body, ...page.records.map(drawn));
      count = page.records.length;
      cursor = page.nextCursor;
      fill(place, ...(count === 0 ? [emptiness()] : [element('div', { class: 'sheet' }, table)]));
      drawFigures();
      announce(figures.textContent ?? '');
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof CallFailed && (error.status === 404 || error.status === 403)) throw error;
      fill(
        place,
        failureBox(
          say('cannotShow'),
          error,
          button(say('retry'), () => void load(), { class: 'quiet small' }),
        ),
      );
    } finally {
      if (!signal.aborted) {
        place.removeAttribute('aria-busy');
        document.body.dataset['shown'] = 'true';
      }
    }
  };

  /** @param {boolean} pressed by the user, whose focus goes on with the first new record */
  const readMore = async (pressed) => {
    if (cursor === null || more.hasAttribute('disabled')) return;
    const { signal } = reading;
    more.toggleAttribute('disabled', true);
    fill(said);
    try {
      const fields = columns();
      const page = await query(type, fields, { take: PAGE_SIZE, includeEtag: true, ...asked(), cursor }, signal);
      const rows = page.records.map(drawn);
      body.append(...rows);
      count += rows.length;
      cursor = page.nextCursor;
      drawFigures();
      if (pressed) rows[0]?.querySelector('a')?.focus();
    } catch (error) {
      if (!signal.aborted) fill(said, failureBox(say('cannotShowMore'), error));
    } finally {
      more.toggleAttribute('disabled', false);
    }
  };

  const readTotal = async () => {
    countAll.toggleAttribute('disabled', true);
    try {
      total = (await query(type, [], { take: 1, ...asked(), includeTotal: true })).total;
      drawFigures();
      announce(figures.textContent ?? '');
    } catch (error) {
      fill(said, failureBox(say('cannotShowMore'), error));
    } finally {
      countAll.toggleAttribute('disabled', false);
    }
  };

  const saveAsCsv = async () => {
    download.toggleAttribute('disabled', true);
    try {
      const { isCut } = await saveList(type, columns(), asked(), person, (saved) => {
        download.textContent = say('rowsRead')(new Intl.NumberFormat(person.locale).format(saved));
      });
      announce(say('downloaded'));
      const most = new Intl.NumberFormat(person.locale).format(ROWS_MAX);
      fill(said, ...(isCut ? [element('p', { class: 'done' }, say('downloadCut')(most))] : []));
    } catch (error) {
      fill(said, failureBox(say('cannotShowMore'), error));
    } finally {
      download.textContent = say('downloadCsv');
      download.toggleAttribute('disabled', false);
    }
  };

  const drawFigures = () => {
    const format = new Intl.NumberFormat(person.locale);
    const known = cursor === null ? count : total;
    figures.textContent =
      known === null
        ? say('shown')(format.format(count))
        : known === count
          ? count === 1
            ? say('oneRecord')
            : say('records')(format.format(count))
          : say('ofTotal')(format.format(count), format.format(known));
    countAll.hidden = known !== null;
    footer.hidden = count === 0;
    more.hidden = cursor === null;
  };

  const drawHead = () => {
    const [first] = order();
    const cells = columns().map((field) => {
      const { apiName: name, label } = field;
      const sorted = first?.id === name ? (first.desc ? 'descending' : 'ascending') : null;
      const attributes = {
        scope: 'col',
        role: 'columnheader',
        class: isNumber(field) ? 'number' : '',
        ...(sorted ? { 'aria-sort': sorted } : {}),
      };
      if (!isSortable(field)) return element('th', attributes, foreign(label));
      const next = sorted === 'ascending' ? [{ id: name, desc: true }] : sorted ? [] : [{ id: name, desc: false }];
      return element(
        'th',
        attributes,
        element(
          'button',
          { type: 'button', class: 'sort', id: `sort-${name}`, click: () => sortBy(next, `sort-${name}`) },
          foreign(label),
          element('span', { class: 'arrow', 'aria-hidden': 'true' }, sorted ? (first?.desc ? '↓' : '↑') : ''),
        ),
      );
    });
    fill(head, element('tr', { role: 'row' }, ...(picked.offered ? [picked.head()] : []), ...cells));
    fill(
      sortSelect,
      element('option', { value: '' }, say('newestFirst')),
      ...columns()
        .filter(isSortable)
        .flatMap(({ apiName: name, label }) =>
          [false, true].map((desc) =>
            element(
              'option',
              { value: `${desc ? '-' : ''}${name}`, selected: first?.id === name && first.desc === desc },
              `${label} (${say(desc ? 'descending' : 'ascending')})`,
            ),
          ),
        ),
    );
  };

  /**
   * @param {Sort[]} sort
   * @param {string} focused
   */
  const sortBy = (sort, focused) => {
    change({ sort });
    document.getElementById(focused)?.focus();
  };

  const drawChips = () => {
    const given = filters();
    const found = chips(type, given, person, (kept) => change({ filters: kept }));
    fill(active, ...found);
    active.hidden = found.length === 0;
    filterButton.textContent =
      given && given.conditions.length > 0 ? `${say('filter')} (${given.conditions.length})` : say('filter');
  };

  const emptiness = () => {
    const limited = Boolean(filters()?.conditions.length) || state.search !== '';
    const create = newLink(type);
    return element(
      'div',
      { class: 'empty card' },
      element('h2', {}, limited ? say('nothingFound') : say('emptyList')(type.labelPlural)),
      element('p', {}, limited ? say('nothingFoundHint') : say('emptyListHint')),
      element(
        'div',
        { class: 'actions' },
        ...(limited
          ? [
              button(
                say('clearFilters'),
                () => {
                  searchBox.value = '';
                  change({ filters: NO_FILTERS, search: '' });
                },
                { class: 'quiet small' },
              ),
            ]
          : type.capabilities.creatable
            ? [create, element('a', { href: '/import' }, say('emptyImport'))]
            : []),
      ),
    );
  };

  const closePanel = () => {
    fill(panel);
    filterButton.setAttribute('aria-expanded', 'false');
    filterButton.focus();
  };
  const filterButton = button(
    say('filter'),
    () => {
      if (panel.hasChildNodes()) return closePanel();
      filterButton.setAttribute('aria-expanded', 'true');
      const made = filterPanel(type, filters(), person, {
        apply: (given) => {
          closePanel();
          change({ filters: given ?? NO_FILTERS });
        },
        cancel: closePanel,
      });
      fill(panel, made);
      made.querySelector('select')?.focus();
    },
    { class: 'quiet small', 'aria-expanded': 'false' },
  );
  const searchBox = /** @type {HTMLInputElement} */ (
    element('input', {
      type: 'search',
      id: 'search',
      value: state.search,
      placeholder: say('searchIn')(type.labelPlural),
      'aria-label': say('searchIn')(type.labelPlural),
      autocomplete: 'off',
      maxlength: '200',
      input: () => {
        clearTimeout(typing);
        typing = window.setTimeout(searchNow, TYPING_MS);
      },
    })
  );
  let typing = 0;
  const searchNow = () => {
    clearTimeout(typing);
    const search = searchBox.value.trim();
    if (search !== state.search) change({ search }, true);
  };
  const viewSelect = element(
    'select',
    {
      id: 'view',
      change: () => {
        const chosen = /** @type {HTMLSelectElement} */ (viewSelect).value;
        const view = type.listViews.find((one) => one.apiName === chosen) ?? null;
        change({ view, filters: null, sort: null });
      },
    },
    element('option', { value: '' }, say('all')(type.labelPlural)),
    ...type.listViews.map(({ apiName: name, label }) =>
      element('option', { value: name, selected: state.view?.apiName === name }, label),
    ),
  );
  const sortSelect = /** @type {HTMLSelectElement} */ (
    element('select', {
      id: 'sort',
      class: 'sorting',
      'aria-label': say('sortBy'),
      change: () => {
        const { value } = sortSelect;
        change({ sort: value === '' ? [] : [{ id: value.replace('-', ''), desc: value.startsWith('-') }] });
      },
    })
  );
  const toolbar = element(
    'form',
    {
      class: 'toolbar',
      role: 'search',
      submit: (event) => {
        event.preventDefault();
        searchNow();
      },
    },
    ...(type.listViews.length > 0
      ? [element('label', { for: 'view', class: 'visually-hidden' }, say('view')), viewSelect]
      : []),
    ...(type.searchable ? [searchBox] : [element('span', { class: 'spring' })]),
    filterButton,
    sortSelect,
  );
  const nearing = new IntersectionObserver((seen) => {
    if (seen.some(({ isIntersecting }) => isIntersecting) && !said.hasChildNodes()) void readMore(false);
  });
  nearing.observe(more);
  fill(place, placeholder());
  return {
    title: type.labelPlural,
    parts: [
      element(
        'div',
        { class: 'title' },
        element('h1', { tabindex: '-1' }, foreign(type.labelPlural)),
        ...(type.capabilities.creatable ? [newLink(type)] : []),
      ),
      toolbar,
      active,
      panel,
      picked.bar,
      picked.place,
      place,
      said,
      footer,
      more,
    ],
    ran: load(),
    close: () => {
      clearTimeout(typing);
      nearing.disconnect();
      reading.abort();
    },
  };
}

/** Filters of a view that the user has taken away. @type {Filters} */
const NO_FILTERS = { logic: 'and', conditions: [] };

/** @param {ObjectType} type */
const newLink = ({ apiName, label }) =>
  element('a', { class: 'button', href: addressOf(apiName, undefined, { view: 'new' }) }, say('newRecord')(label));

const placeholder = () =>
  element('div', { class: 'skeleton', 'aria-hidden': 'true' }, ...Array.from({ length: 8 }, () => element('div', {})));

/**
 * @param {ObjectType} type
 * @param {ListView | null} view
 * @returns {Field[]}
 */
function columnsOf(type, view) {
  const names = view?.columns ?? defaultColumns(type);
  return fieldsOf(type, names.includes('name') ? names : ['name', ...names]);
}

/**
 * @param {ObjectType} type
 * @returns {State}
 */
function stateOf(type) {
  const given = new URLSearchParams(location.search);
  const sort = given.get('sort');
  return {
    view: type.listViews.find(({ apiName }) => apiName === given.get('list')) ?? null,
    search: given.get('q') ?? '',
    filters: parsed(given.get('filters')),
    sort:
      sort === null
        ? null
        : sort
            .split(',')
            .filter((id) => type.byName.has(id.replace('-', '')))
            .map((id) => ({ id: id.replace('-', ''), desc: id.startsWith('-') })),
  };
}

/**
 * @param {string | null} text
 * @returns {Filters | null}
 */
function parsed(text) {
  if (text === null) return null;
  try {
    const { logic, conditions } = JSON.parse(text);
    if (!Array.isArray(conditions)) return null;
    // Other pages link here without ids, which queries take.
    const named = conditions.map((condition, index) => ({ id: String(index), ...condition }));
    return { logic: logic === 'or' ? 'or' : 'and', conditions: named };
  } catch {
    return null;
  }
}

/**
 * @param {ObjectType} type
 * @param {State} state
 */
function addressOfState({ apiName }, { view, search, filters, sort }) {
  return addressOf(apiName, undefined, {
    ...(view ? { list: view.apiName } : {}),
    ...(search ? { q: search } : {}),
    ...(filters && (view || filters.conditions.length > 0) ? { filters: JSON.stringify(filters) } : {}),
    ...(sort && (view || sort.length > 0)
      ? { sort: sort.map(({ id, desc }) => (desc ? `-${id}` : id)).join(',') }
      : {}),
  });
}

const SHORT = new Set(['date', 'dateTime', 'autoNumber']);

/** @param {Field} field */
function kindOf(field) {
  if (isNumber(field)) return 'number';
  if (isReference(field)) return 'reference';
  return SHORT.has(field.fieldType) ? 'short' : '';
}

/**
 * @param {RecordData} record
 * @param {readonly Field[]} fields
 * @param {Person} person
 * @param {{ apiName: string }} type
 * @param {readonly Node[]} [before] cells before the fields
 */
export function row(record, fields, person, { apiName }, before = []) {
  return element(
    'tr',
    { role: 'row' },
    ...before,
    ...fields.map((field) => {
      if (field.apiName === 'name')
        return element(
          'th',
          { scope: 'row', role: 'rowheader', class: kindOf(field) },
          element('a', { href: addressOf(apiName, record.id) }, foreign(nameOf(record))),
        );
      return element(
        'td',
        {
          role: 'cell',
          'data-label': field.label,
          class: kindOf(field),
        },
        shown(record, field, person),
      );
    }),
  );
}
