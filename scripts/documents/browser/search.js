/**
 * Search in the documents of this version, in the browser: the index is loaded when the field gets focus. Without
 * this script the navigation leads to every page.
 */

/**
 * @typedef {{ path: string, page: string, heading: string, excerpt: string }} Found
 * @typedef {(text: string) => Found[]} Search
 */

const MAX_RESULTS = 12;

const root = document.body.dataset['root'] ?? './';
const place = document.querySelector('#site-search');

/** @type {Promise<Search> | undefined} */
let loading;

/** Searches the index, which is asked for once; again after a failure. */
const search = () =>
  (loading ??= load().catch((error) => {
    loading = undefined;
    throw error;
  }));

/** @returns {Promise<Search>} */
async function load() {
  const [{ default: MiniSearch }, { searchOptions }, answer] = await Promise.all([
    // Beside this script, as is the index.
    import(new URL('minisearch.js', import.meta.url).href),
    import(new URL('searching.js', import.meta.url).href),
    fetch(`${root}search.json`),
  ]);
  if (!answer.ok) throw new Error(`The index was answered with ${answer.status}.`);
  const { options, index } = await answer.json();
  const loaded = await MiniSearch.loadJSAsync(index, options);
  const tokenize = MiniSearch.getDefault('tokenize');
  return (text) => loaded.search(text, searchOptions(text, tokenize));
}

if (place) {
  const label = element('label', 'Search the documents', { for: 'site-search-field', class: 'visually-hidden' });
  const field = element('input', '', {
    id: 'site-search-field',
    type: 'search',
    placeholder: 'Search',
    autocomplete: 'off',
    spellcheck: 'false',
    maxlength: '100',
  });
  const results = element('ul', '', { id: 'site-results', 'aria-label': 'Search results' });
  results.hidden = true;
  const status = element('p', '', { role: 'status', class: 'visually-hidden' });
  place.append(label, field, results, status);
  activate(/** @type {HTMLInputElement} */ (field), results, status);
}

/**
 * @param {HTMLInputElement} field
 * @param {HTMLElement} results
 * @param {HTMLElement} status
 */
function activate(field, results, status) {
  let asked = 0;
  const show = async () => {
    const mine = ++asked;
    const text = field.value.trim();
    if (text === '') {
      results.hidden = true;
      status.textContent = '';
      return;
    }
    try {
      const found = (await search())(text).slice(0, MAX_RESULTS);
      if (mine !== asked) return;
      results.replaceChildren(...(found.length > 0 ? found.map(item) : [element('li', 'Nothing was found.')]));
      results.hidden = false;
      status.textContent = found.length === 1 ? '1 result' : `${found.length || 'No'} results`;
    } catch {
      if (mine !== asked) return;
      results.hidden = true;
      status.textContent = 'The search could not be loaded. Try again.';
    }
  };
  field.addEventListener('focus', () => search().catch(() => {}), { once: true });
  field.addEventListener('input', show);
  field.parentElement?.addEventListener('keydown', (event) => {
    const links = [...results.querySelectorAll('a')];
    const at = links.findIndex((link) => link.matches(':focus'));
    if (event.key === 'Escape') {
      results.hidden = true;
      field.focus();
    } else if (event.key === 'ArrowDown' && !results.hidden) links[Math.min(at + 1, links.length - 1)]?.focus();
    else if (event.key === 'ArrowUp' && at >= 0) (links[at - 1] ?? field).focus();
    else if (event.key === 'Enter' && document.activeElement === field && !results.hidden) links[0]?.click();
    else return;
    event.preventDefault();
  });
  document.addEventListener('keydown', (event) => {
    const inField = event.target instanceof Element && event.target.closest('input, textarea, select');
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || inField) return;
    event.preventDefault();
    field.focus();
  });
  document.addEventListener('click', (event) => {
    if (event.target instanceof Node && !field.parentElement?.contains(event.target)) results.hidden = true;
  });
}

/** @param {Found} found */
function item({ path, page, heading, excerpt }) {
  const link = element('a', '', { href: `${root}${path}` });
  link.append(element('strong', heading === '' ? page : `${page}: ${heading}`), element('span', excerpt));
  const entry = element('li');
  entry.append(link);
  return entry;
}

/**
 * @param {string} name
 * @param {string} text
 * @param {Record<string, string>} attributes
 */
function element(name, text = '', attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
