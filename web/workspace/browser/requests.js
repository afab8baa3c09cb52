/** The drawer "What this screen asked": each request of the page, as curl and as erp. */
import { watchCalls } from '../../shared/api.js';
import { announce, button, element } from '../../shared/elements.js';
import { say } from './words.js';

/** @import { Call } from '../../shared/api.js' */

const KEPT_MAX = 100;

/** @type {Call[]} the latest first */
const calls = [];
let drawn = () => {};

/** Begins to take notes: called before the first request. */
export function watchRequests() {
  watchCalls((call) => {
    calls.unshift(call);
    calls.length = Math.min(calls.length, KEPT_MAX);
    drawn();
  });
}

/** The button that opens the drawer, in the footer of the page. */
export function requestsDrawer() {
  const list = element('ol', { class: 'requests' });
  /** @type {WeakMap<Call, Node>} */
  const entries = new WeakMap();
  const hint = element('p', { class: 'hint' });
  const close = button(say('close'), () => dialog.close(), { class: 'quiet small' });
  const clear = button(
    say('clear'),
    () => {
      calls.length = 0;
      drawn();
    },
    { class: 'quiet small' },
  );
  const heading = element('h2', { id: 'requests-heading' }, say('requests'));
  const dialog = /** @type {HTMLDialogElement} */ (
    element(
      'dialog',
      { class: 'drawer', 'aria-labelledby': 'requests-heading' },
      element('div', { class: 'title' }, heading, element('div', { class: 'actions' }, clear, close)),
      hint,
      list,
    )
  );
  const count = element('span', { class: 'count' });
  const open = element(
    'button',
    {
      type: 'button',
      class: 'quiet small',
      'aria-haspopup': 'dialog',
      click: () => {
        dialog.showModal();
        drawn();
      },
    },
    say('requests'),
    ' ',
    count,
  );
  drawn = () => {
    count.textContent = String(calls.length);
    if (!dialog.open) return;
    hint.textContent = say(calls.length === 0 ? 'noRequests' : 'requestsHint');
    // Entries stay: one that is open is being read while the page asks for more.
    for (const call of calls.toReversed())
      if (!entries.has(call)) {
        entries.set(call, entry(call));
        list.prepend(/** @type {Node} */ (entries.get(call)));
      }
    while (list.childElementCount > calls.length) list.lastElementChild?.remove();
  };
  drawn();
  return element('div', { class: 'asked' }, open, dialog);
}

/** @param {Call} call */
function entry(call) {
  const { method, path, status, milliseconds } = call;
  const ways = /** @type {const} */ ([
    ['curl', curlOf(call)],
    ['erp', erpOf(call)],
  ]);
  return element(
    'li',
    {},
    element(
      'details',
      {},
      element(
        'summary',
        {},
        element('span', { class: `status${status >= 400 || status === 0 ? ' bad' : ''}` }, String(status || '–')),
        element('code', {}, `${method} ${decodeURIComponent(path)}`),
        element('span', { class: 'hint' }, `${milliseconds} ms`),
      ),
      ...ways.flatMap(([name, command]) =>
        command === null
          ? []
          : [
              element(
                'div',
                { class: 'command' },
                element('pre', { tabindex: '0', 'aria-label': name }, command),
                button(say('copy'), () => void copy(command), {
                  class: 'quiet small',
                  'aria-label': `${say('copy')}: ${name}`,
                }),
              ),
            ],
      ),
    ),
  );
}

/** @param {string} text */
async function copy(text) {
  await navigator.clipboard.writeText(text);
  announce(say('copied'));
}

/** A text that a shell takes as one word. @param {string} text */
const quoted = (text) => (/^[\w./:@=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/** @param {Call} call */
function curlOf({ method, path, headers, body }) {
  const given = { authorization: 'Bearer $TOKEN', ...headers };
  const { base = '' } = document.body.dataset;
  return [
    `curl -s${method === 'GET' || (method === 'POST' && body) ? '' : ` -X ${method}`} ${quoted(`${base}/api/v1${path}`)}`,
    ...Object.entries(given).map(([name, value]) =>
      name === 'authorization' ? `  -H "Authorization: ${value}"` : `  -H ${quoted(`${name}: ${value}`)}`,
    ),
    ...(body ? [`  -d ${quoted(JSON.stringify(body))}`] : []),
  ].join(' \\\n');
}

/**
 * The same with the command line; null: it has no command for that.
 * @param {Call} call
 */
function erpOf({ method, path, headers, body }) {
  const { pathname, searchParams } = new URL(path, 'https://erp.invalid');
  const [, area, object = '', third, fourth, fifth] = pathname.split('/');
  /** @param {...string} parts */
  const command = (...parts) => ['erp', ...parts.filter((part) => part !== '')].map(quoted).join(' ');
  const confirmed = headers['x-duplicate-confirmation'];
  const match = [
    ...(headers['if-match'] ? ['--if-match', headers['if-match']] : []),
    ...(confirmed ? ['--confirm-duplicates', confirmed] : []),
  ];
  if (area === 'identity') return command('whoami');
  if (area === 'objects') return object ? command('objects', 'describe', object) : command('objects', 'list');
  if (area !== 'data') return null;
  if (third === 'query') return command('data', 'list', object, ...listOptions(/** @type {any} */ (body ?? {})));
  if (third === undefined) return command('data', 'create', object, '--data', JSON.stringify(body), ...match);
  if (fourth === 'history') return command('data', 'history', object, third);
  if (fourth === 'restore') return command('data', 'restore', object, third);
  if (fourth === 'transitions') {
    if (fifth === undefined) return command('data', 'transitions', object, third);
    const { input, comment } = /** @type {{ input?: object, comment?: string }} */ (body ?? {});
    return command(
      ...['data', 'transition', object, third, fifth],
      ...(input ? ['--input', JSON.stringify(input)] : []),
      ...(comment ? ['--comment', comment] : []),
      ...match,
    );
  }
  if (method === 'DELETE') return command('data', 'delete', object, third, '--yes', ...match);
  if (method === 'PATCH') return command('data', 'update', object, third, '--data', JSON.stringify(body), ...match);
  return command(
    ...['data', 'get', object, third],
    ...[...searchParams].flatMap(([name, value]) => [`--${name}`, value]),
  );
}

/** @param {Record<string, any>} body */
function listOptions({ fields, expand, filters, where, whereIn, sort, search, take, cursor, includeTotal }) {
  const conditions = [
    ...Object.entries(where ?? {}).map(([field, value]) => ({ field, operator: 'eq', value })),
    ...Object.entries(whereIn ?? {}).map(([field, value]) => ({ field, operator: 'in', value })),
  ].map((condition, at) => ({ id: `c${at}`, ...condition }));
  const all = filters ?? (conditions.length > 0 ? { logic: 'and', conditions } : null);
  const references = Object.entries(expand ?? {}).map(([name, asked]) => `${name}(${asked.join(',')})`);
  return [
    ...(fields ? ['--fields', fields.join(',')] : []),
    ...(references.length > 0 ? ['--expand', references.join(',')] : []),
    ...(all ? ['--filters', JSON.stringify(all)] : []),
    ...(sort ? ['--sort', sort.map((/** @type {any} */ { id, desc }) => `${desc ? '-' : ''}${id}`).join(',')] : []),
    ...(search ? ['--search', search] : []),
    ...(take ? ['--take', String(take)] : []),
    ...(cursor ? ['--cursor', cursor] : []),
    ...(includeTotal ? ['--total'] : []),
  ];
}
