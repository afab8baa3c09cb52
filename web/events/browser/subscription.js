/** One webhook: what it sends, what can be done with it, and its deliveries. */
import { answer, CallFailed, call } from '../../shared/api.js';
import { announce, button, element, fill, foreign } from '../../shared/elements.js';
import { failureBox, showBox } from '../../shared/failure.js';
import { moment } from '../../shared/format.js';
import { deliveriesPart } from './deliveries.js';
import { trail } from './form.js';
import { secretPart } from './secret.js';
import { code, failures, reasonOf, stateBadge } from './words.js';

/** @import { Place, View } from '../../shared/types.d.ts' */
/** @import { Delivery, Page, Subscription } from './types.d.ts' */

const ASK_MS = 1_000;
const TEST_SECONDS = 20;

/**
 * @param {string} id
 * @param {Place} place
 * @param {(address: string) => void} go
 * @returns {Promise<View>}
 */
export async function showSubscription(id, place, go) {
  const path = `/events/subscriptions/${id}`;
  const asked = answer(path);
  /** @type {Promise<Subscription>} */
  const read = asked.then((response) => response.json());
  const [response, subscription, deliveries] = await Promise.all([asked, read, deliveriesPart(id, place, read)]);
  let etag = response.headers.get('etag') ?? '';
  const { name, state, reason } = subscription;
  const about = element('div', {}, facts(subscription, place));
  const said = element('div', { class: 'said' });
  const leaving = new AbortController();
  const actions = element(
    'div',
    { class: 'actions' },
    ...(state === 'active'
      ? [act('Pause', () => change('paused')), act('Send a test', () => test())]
      : [act('Resume', () => change('active'))]),
    element('a', { href: `/events/${id}?view=settings` }, 'Settings'),
    act('Replace the secret', async () =>
      confirm(
        'Replace the secret?',
        'For 24 hours deliveries are signed with both, so that the receiver has the time to change.',
        'Replace',
        async () => {
          const replaced = await answer(`${path}/rotate-secret`, { method: 'POST', key: crypto.randomUUID() });
          etag = replaced.headers.get('etag') ?? '';
          const changed = await replaced.json();
          fill(about, facts(changed, place));
          showBox(said, secretPart(changed));
        },
      ),
    ),
    act('Delete', async () =>
      confirm(`Delete ${name}?`, 'Nothing more is sent, and its deliveries are forgotten.', 'Delete', async () => {
        await call(path, { method: 'DELETE', etag, key: crypto.randomUUID() });
        announce('The webhook is deleted');
        go('/events');
      }),
    ),
  );

  /**
   * @param {string} label
   * @param {() => Promise<void>} work
   */
  function act(label, work) {
    const run = async () => {
      for (const one of actions.querySelectorAll('button')) one.disabled = true;
      try {
        await work();
      } catch (error) {
        showFailure(error);
      }
      for (const one of actions.querySelectorAll('button')) one.disabled = false;
    };
    return button(label, () => void run(), { class: 'quiet small' });
  }

  /** @param {unknown} error */
  function showFailure(error) {
    const isChanged = error instanceof CallFailed && error.status === 412;
    const again = button('Load it anew', () => go(location.pathname + location.search));
    showBox(said, failureBox('It was not done', error, ...(isChanged ? [again] : [])));
  }

  /** @param {'active' | 'paused'} wanted */
  async function change(wanted) {
    await call(path, { method: 'PATCH', body: { state: wanted }, etag, key: crypto.randomUUID() });
    announce(wanted === 'active' ? 'The webhook is active' : 'The webhook is paused');
    go(location.pathname + location.search);
  }

  /**
   * @param {string} question
   * @param {string} text
   * @param {string} label
   * @param {() => Promise<void>} work
   */
  function confirm(question, text, label, work) {
    const yes = element('button', { type: 'button', class: 'small', click: () => void run() }, label);
    const no = button('Cancel', () => fill(said), { class: 'quiet small' });
    const run = async () => {
      for (const one of [yes, no]) one.toggleAttribute('disabled', true);
      await work().catch(showFailure);
    };
    showBox(
      said,
      element(
        'section',
        { class: 'card confirm', 'aria-labelledby': 'question' },
        element('h2', { id: 'question' }, foreign(question)),
        element('p', {}, text),
        element('div', { class: 'actions' }, yes, no),
      ),
    );
  }

  async function test() {
    /** @type {Delivery} */
    const { deliveryId } = await call(`${path}/test`, { method: 'POST', key: crypto.randomUUID() });
    fill(said, element('p', {}, 'The test is on its way…'));
    for (let left = TEST_SECONDS; left > 0 && !leaving.signal.aborted; left--) {
      await new Promise((resolve) => setTimeout(resolve, ASK_MS));
      /** @type {Page<Delivery>} */
      const { records } = await call(`${path}/deliveries?take=25`);
      const tried = records.find((one) => one.deliveryId === deliveryId);
      if (!tried) continue;
      const words = testWords(tried);
      fill(said, element('p', { class: tried.status === 'delivered' ? 'done' : 'bad' }, words));
      announce(words);
      await deliveries.refresh();
      return;
    }
    fill(said, element('p', {}, 'The test has not been sent yet. Refresh the deliveries in a moment.'));
  }

  const parts = [
    ...trail(),
    element('div', { class: 'title' }, element('h1', { tabindex: '-1' }, foreign(name)), stateBadge(state)),
    ...(reason === null ? [] : [element('p', { class: 'bad' }, reasonOf(reason))]),
    ...(state === 'paused'
      ? [element('p', {}, 'Nothing is sent. Events are kept for seven days, and sent when it is resumed.')]
      : []),
    about,
    actions,
    said,
    deliveries.part,
  ];
  return { title: name, parts, close: () => leaving.abort() };
}

/** @param {Delivery} delivery */
function testWords({ status, attempts }) {
  const last = attempts.at(-1);
  const answered = last?.status ? `answered ${last.status}` : (last?.failure ?? 'gave no answer');
  const took = last ? ` in ${last.latencyMs} ms` : '';
  if (status === 'delivered') return `The test has arrived: the receiver ${answered}${took}.`;
  return last?.status
    ? `The test has failed: the receiver ${answered}${took}. It is tried again.`
    : `The test has failed: ${answered}. It is tried again.`;
}

/**
 * @param {Subscription} subscription
 * @param {Place} place
 */
function facts({ url, eventTypes, objects, payload, ordering, signing, publicKey, failureCount, createdAt }, place) {
  /** @type {[string, Node | string][]} */
  const entries = [
    ['Sent to', code(url)],
    ['Types of events', element('span', {}, ...listed(eventTypes))],
    ['Objects', objects.length === 0 ? 'All' : element('span', {}, ...listed(objects))],
    ['Content', payload === 'full' ? 'Values before and after' : 'Names of changed fields'],
    ['Order', ordering === 'perRecord' ? 'In order for each record' : 'As soon as possible'],
    ['Signatures', signing === 'hmac' ? 'With a shared secret (HMAC-SHA256)' : 'With a key pair (Ed25519)'],
    ...(publicKey === null ? [] : [/** @type {[string, Node]} */ (['Public key', code(publicKey)])]),
    ['Set up', element('time', { datetime: createdAt }, moment(createdAt, place))],
    ...(failureCount > 0 ? [/** @type {[string, string]} */ (['Since the last success', failures(failureCount)])] : []),
  ];
  return element(
    'dl',
    { class: 'card about' },
    ...entries.map(([term, value]) => element('div', {}, element('dt', {}, term), element('dd', {}, value))),
  );
}

/** @param {string[]} names */
const listed = (names) => names.flatMap((name, at) => [at === 0 ? '' : ', ', code(name)]);
