/** Why a user may or may not open a record: user, object and record are chosen one after the other, each in the address. */
import { CallFailed, call } from '../../shared/api.js';
import { element, foreign, problem } from '../../shared/elements.js';
import { say } from './words.js';

/** @import { View } from '../../shared/types.d.ts' */
/**
 * @typedef {object} Step
 * @property {'scope' | 'publication' | 'objectPermission' | 'fieldPermission' | 'sharing' | 'recordState' | 'agentPolicy'} layer
 * @property {'pass' | 'deny' | 'notApplicable'} result
 * @property {{ kind: 'profile' | 'permissionSet' | 'role' | 'sharingRule' | 'manualShare' | 'owner' | 'orgDefault', apiName: string | null }[]} grantedBy
 * @property {string | null} remedy
 */
/** @typedef {{ allowed: boolean, steps: Step[] }} Explanation */
/** @typedef {{ id: string, name: string | null }} Named */

const OFFERED = 20;
const SEARCH_MIN = 2;
const OPERATIONS = /** @type {const} */ (['read', 'update', 'delete']);

/**
 * @param {(address: string) => void} go
 * @returns {Promise<View>}
 */
export async function showWhy(go) {
  const asked = Object.fromEntries(new URLSearchParams(location.search));
  const { user, object, record } = asked;
  const title = say('why');
  /** @param {...Node} parts */
  const view = (...parts) => ({
    title,
    parts: [
      element('p', { class: 'trail' }, element('a', { href: '/admin' }, say('title'))),
      element('h1', { tabindex: '-1' }, title),
      ...parts,
    ],
  });
  if (!user) return view(...(await choose('User', 'user', say('whichUser'), asked, go)));
  const person = await chosen('User', user, say('user'), {});
  if (!object) return view(person, ...(await chooseObject(user)));
  if (!record) return view(person, ...(await choose(object, 'record', say('whichRecord'), asked, go)));
  const about = await chosen(object, record, object, { user });
  try {
    const answers = await Promise.all(OPERATIONS.map((operation) => explain(object, record, user, operation)));
    return view(person, about, ...answers.map((answer, at) => verdict(OPERATIONS[at] ?? 'read', answer)));
  } catch (error) {
    if (!(error instanceof CallFailed) || error.status !== 403) throw error;
    return view(problem(say('refused'), say('refusedHint')));
  }
}

/**
 * @param {string} object
 * @param {string} record
 * @param {string} userId
 * @param {string} operation
 * @returns {Promise<Explanation>}
 */
const explain = (object, record, userId, operation) =>
  call(`/data/${encodeURIComponent(object)}/${encodeURIComponent(record)}/access/explain`, {
    body: { operation, userId },
  });

/** @param {Record<string, string>} parameters */
const address = (parameters) => `/admin/why?${new URLSearchParams(parameters)}`;

/**
 * Shows what has been chosen, with a link to choose another one.
 * @param {string} object
 * @param {string} id
 * @param {string} label
 * @param {Record<string, string>} without the address to choose again
 */
async function chosen(object, id, label, without) {
  /** @type {Named} */
  const { name } = await call(`/data/${encodeURIComponent(object)}/${encodeURIComponent(id)}?fields=name`);
  return element(
    'p',
    { class: 'chosen' },
    `${label}: `,
    element('strong', {}, foreign(name ?? id)),
    ' ',
    element('a', { href: address(without) }, say('other')),
  );
}

/** @param {string} user */
async function chooseObject(user) {
  /** @type {{ records: { apiName: string, label: string }[] }} */
  const { records } = await call('/objects');
  return [
    element('h2', {}, say('whichObject')),
    element(
      'ul',
      { class: 'found' },
      ...records
        .sort((a, b) => a.label.localeCompare(b.label))
        .map(({ apiName, label }) =>
          element('li', {}, element('a', { href: address({ user, object: apiName }) }, foreign(label))),
        ),
    ),
  ];
}

/**
 * A search whose results are links.
 * @param {string} object
 * @param {string} parameter gets the id of the one that is chosen
 * @param {string} label
 * @param {Record<string, string>} asked
 * @param {(address: string) => void} go
 */
async function choose(object, parameter, label, { q = '', ...rest }, go) {
  /** @type {{ records: Named[] }} */
  const { records } = await call(`/data/${encodeURIComponent(object)}/query`, {
    body: { fields: ['name'], take: OFFERED, ...(q.length >= SEARCH_MIN ? { search: q } : {}) },
  });
  const input = /** @type {HTMLInputElement} */ (element('input', { id: 'search', type: 'search', value: q }));
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    go(address({ ...rest, q: input.value.trim() }));
  };
  return [
    element(
      'form',
      { role: 'search', submit },
      element('label', { for: 'search' }, label),
      input,
      element('button', { type: 'submit' }, say('search')),
    ),
    records.length === 0
      ? element('p', {}, say('nothing'))
      : element(
          'ul',
          { class: 'found' },
          ...records.map(({ id, name }) =>
            element('li', {}, element('a', { href: address({ ...rest, [parameter]: id }) }, foreign(name ?? id))),
          ),
        ),
  ];
}

/**
 * @param {(typeof OPERATIONS)[number]} operation
 * @param {Explanation} explanation
 */
function verdict(operation, { allowed, steps }) {
  const deciding = steps.filter(({ result, grantedBy }) => result === 'deny' || grantedBy.length > 0);
  return element(
    'section',
    { class: 'card verdict' },
    element('h2', {}, say(allowed ? 'may' : 'mayNot')(say(operation))),
    element('ul', {}, ...deciding.map(sentence)),
  );
}

/** @param {Step} step */
function sentence({ layer, result, grantedBy, remedy }) {
  const grants = grantedBy.flatMap(({ kind, apiName }, at) => [
    at === 0 ? '' : ', ',
    say(kind),
    ...(apiName === null ? [] : [' ', foreign(apiName)]),
  ]);
  const start = `${say(layer)}: `;
  if (result !== 'deny') return element('li', {}, start, say('grantedBy'), ' ', ...grants);
  return element('li', {}, start, element('strong', {}, say('denied')), ...(remedy ? [' ', foreign(remedy)] : []));
}
