/** The view of each address: what there is, a list of records, a record, or its form. */
import { button, byId, element, fill, foreign, problem } from '../../shared/elements.js';
import { identify } from '../../shared/navigation.js';
import { showViews } from '../../shared/views.js';
import { takeDrafts } from './drafts.js';
import { showForm } from './form.js';
import { showList } from './list.js';
import { objects, typeOf } from './objects.js';
import { paletteButton } from './palette.js';
import { restoreById, showRecord } from './record.js';
import { requestsDrawer, watchRequests } from './requests.js';
import { say } from './words.js';

/** @import { Person, View } from '../../shared/types.d.ts' */
/** @import { ObjectSummary } from './types.d.ts' */

/** @type {Person | null} */
let person = null;
/** @type {(address: string) => void} */
let goTo = () => {};

watchRequests();

export const begin = showViews({
  open: async (main, go) => {
    goTo = go;
    const [, , apiName, id] = location.pathname.split('/');
    person ??= await arrive(apiName);
    const known = await objects();
    for (const link of byId('objects').querySelectorAll('a'))
      if (link.pathname === `/app/${apiName}`) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    byId('objects').querySelector('details')?.toggleAttribute('open', !NARROW.matches);
    if (!apiName) return home(known);
    fill(main, skeleton());
    const editing = new URLSearchParams(location.search).get('view');
    if (editing === 'new' && !id) return showForm(apiName, null, person, go);
    if (!id) return showList(apiName, person);
    return editing === 'edit' ? showForm(apiName, id, person, go) : showRecord(apiName, id, person, go);
  },
  problem: 'The records cannot be shown',
  missing,
});

const NARROW = window.matchMedia('(max-width: 60rem)');

/**
 * The first view: who has signed in, and what there is.
 * @param {string | undefined} apiName the object that is shown: asked for at once, its view reports what fails
 */
async function arrive(apiName) {
  const found = await identify();
  takeDrafts(found.userId);
  if (apiName) typeOf(apiName).catch(() => {});
  const known = await objects();
  const list = element('ul', {}, ...known.map(link));
  const nav = element(
    'nav',
    { id: 'objects', class: 'objects', 'aria-label': say('objects') },
    paletteButton(known, (address) => goTo(address)),
    element('details', { open: true }, element('summary', {}, say('objects')), list),
  );
  byId('main').before(nav);
  byId('main').after(requestsDrawer());
  NARROW.addEventListener('change', () => nav.querySelector('details')?.toggleAttribute('open', !NARROW.matches));
  return found;
}

/** @param {ObjectSummary} object */
const link = ({ apiName, label }) => element('li', {}, element('a', { href: `/app/${apiName}` }, foreign(label)));

/**
 * @param {readonly ObjectSummary[]} known
 * @returns {View}
 */
function home(known) {
  const heading = element('h1', { tabindex: '-1' }, say('home'));
  if (known.length === 0)
    return {
      title: say('home'),
      parts: [
        heading,
        element(
          'div',
          { class: 'empty card' },
          element('h2', {}, say('noObjects')),
          element('p', {}, say('noObjectsHint')),
        ),
      ],
    };
  const tiles = known.map(({ apiName, label, capabilities }) =>
    element(
      'li',
      { class: 'card' },
      element('h2', {}, element('a', { href: `/app/${apiName}` }, foreign(label))),
      ...(capabilities.creatable
        ? [element('a', { class: 'add', href: `/app/${apiName}?view=new` }, say('newRecord')(label))]
        : []),
    ),
  );
  return {
    title: say('home'),
    parts: [heading, element('p', { class: 'lead' }, say('homeLead')), element('ul', { class: 'tiles' }, ...tiles)],
  };
}

/** Stands for what is being asked for. */
function skeleton() {
  return element(
    'div',
    { class: 'skeleton', 'aria-hidden': 'true' },
    ...Array.from({ length: 8 }, () => element('div', {})),
  );
}

function missing() {
  const [, , apiName = '', id] = location.pathname.split('/');
  const back = element('p', {}, element('a', { href: id ? `/app/${apiName}` : '/app' }, say('home')));
  if (!id) return [problem(say('missingObject'), say('missingObjectHint')), back];
  const said = element('div', { class: 'said' });
  const restore = button(say('restore'), () => void restoreById(apiName, id, said, goTo), { class: 'quiet small' });
  return [
    problem(say('missingRecord'), say('missingRecordHint'), element('p', {}, say('restoreHint')), restore),
    said,
    back,
  ];
}
