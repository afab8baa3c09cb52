/** The deliveries of a webhook with what was sent and every attempt, and sending them again. */
import { call } from '../../shared/api.js';
import { announce, button, element, fill, foreign } from '../../shared/elements.js';
import { failureBox, showBox } from '../../shared/failure.js';
import { moment } from '../../shared/format.js';
import { growing } from './list.js';
import { code, STATUSES, statusBadge } from './words.js';

/** @import { Place } from '../../shared/types.d.ts' */
/** @import { Attempt, Delivery, Page, Settings, Status } from './types.d.ts' */

const PAGE_SIZE = 20;

/** @type {readonly [status: Status | null, label: string, empty: [title: string, text: string]][]} */
const TABS = [
  [
    null,
    'All',
    [
      'Nothing was sent yet',
      'Deliveries stand here once they were tried. Send a test to see whether the receiver answers.',
    ],
  ],
  ['delivered', STATUSES.delivered, ['Nothing was delivered', 'Deliveries that the receiver has accepted stand here.']],
  ['pending', STATUSES.pending, ['Nothing waits', 'Deliveries that have failed and are tried again stand here.']],
  ['parked', STATUSES.parked, ['Nothing has failed', 'Deliveries stand here whose last attempt has failed.']],
];

/**
 * @param {string} id
 * @param {Place} place
 * @param {Promise<Pick<Settings, 'payload'>>} settings of the webhook
 * @returns {Promise<{ part: HTMLElement, refresh: () => Promise<void> }>}
 */
export async function deliveriesPart(id, place, settings) {
  const path = `/events/subscriptions/${id}`;
  const asked = new URLSearchParams(location.search).get('status');
  const [status, , empty] = TABS.find(([one]) => one === asked) ?? /** @type {typeof TABS[number]} */ (TABS[0]);
  const said = element('div', { class: 'said' });
  const list = element('div', {});
  /**
   * @param {string | null} cursor
   * @returns {Promise<Page<Delivery>>}
   */
  const read = (cursor) => {
    const query = new URLSearchParams({
      take: String(PAGE_SIZE),
      ...(status ? { status } : {}),
      ...(cursor ? { cursor } : {}),
    });
    return call(`${path}/deliveries?${query}`);
  };
  const draw = async () => {
    const page = await read(null);
    const [title, text] = empty;
    fill(
      list,
      ...(page.records.length === 0
        ? [element('div', { class: 'empty card' }, element('h3', {}, title), element('p', {}, text))]
        : growing('deliveries', page, read, (one) => entry(one, place, settings, () => askAgain(one)))),
    );
  };
  const refresh = async () => {
    fill(said);
    try {
      await draw();
    } catch (error) {
      fill(said, failureBox('The deliveries cannot be shown', error));
    }
  };

  /** @param {object} body */
  const replay = async (body) => {
    try {
      /** @type {{ events: number | null }} */
      const { events } = await call(`${path}/replay`, { body, key: crypto.randomUUID() });
      const words = replayWords(events);
      fill(said, element('p', { class: 'done' }, words));
      announce(words);
      await draw();
    } catch (error) {
      showBox(said, failureBox('They are not sent again', error));
    }
  };

  /** @param {Delivery} delivery */
  const askAgain = ({ cursor, eventType, subject }) => {
    const from = cursor === null ? {} : { fromCursor: cursor };
    const all = element(
      'button',
      { type: 'button', class: 'small', click: () => void replay(from) },
      'Everything from here',
    );
    const failed = button('Only what has failed', () => void replay({ ...from, onlyFailed: true }), {
      class: 'quiet small',
    });
    const no = button('Cancel', () => fill(said), { class: 'quiet small' });
    showBox(
      said,
      element(
        'section',
        { class: 'card confirm', 'aria-labelledby': 'again-question' },
        element('h3', { id: 'again-question' }, 'Send again from this event on?'),
        element('p', {}, code(eventType), ' ', foreign(subject)),
        element('p', {}, 'The receiver gets this event and all later ones of the webhook once more, up to 10,000.'),
        element('div', { class: 'actions' }, all, failed, no),
      ),
    );
  };

  await draw();
  const part = element(
    'section',
    { 'aria-labelledby': 'deliveries' },
    element(
      'div',
      { class: 'title' },
      element('h2', { id: 'deliveries' }, 'Deliveries'),
      button('Refresh', () => void refresh(), { class: 'quiet small' }),
    ),
    element(
      'nav',
      { class: 'tabs', 'aria-label': 'Deliveries' },
      ...TABS.map(([one, label]) =>
        element(
          'a',
          {
            href: `/events/${id}${one ? `?status=${one}` : ''}`,
            ...(one === status ? { 'aria-current': 'page' } : {}),
          },
          label,
        ),
      ),
    ),
    ...(status === 'parked'
      ? [button('Try all failed ones again', () => void replay({ onlyFailed: true }), { class: 'quiet small' })]
      : []),
    said,
    list,
  );
  return { part, refresh };
}

/** @param {number | null} events */
function replayWords(events) {
  if (events === null) return 'The events are sent again. They stand in the list once they were tried.';
  if (events === 0) return 'Nothing has failed since.';
  return events === 1 ? '1 delivery is tried again.' : `${events} deliveries are tried again.`;
}

/**
 * @param {Delivery} delivery
 * @param {Place} place
 * @param {Promise<Pick<Settings, 'payload'>>} settings
 * @param {() => void} again
 */
function entry(delivery, place, settings, again) {
  const { deliveryId, eventType, subject, status, attempts, nextAttemptAt } = delivery;
  const heading = `delivery-${deliveryId}`;
  const last = attempts.at(-1);
  return element(
    'li',
    { class: 'card', tabindex: '-1', 'aria-labelledby': heading },
    element(
      'p',
      { class: 'facts' },
      statusBadge(status),
      ...(last ? [time(last.at, place), element('span', {}, `${last.latencyMs} ms`)] : []),
      ...(nextAttemptAt === null ? [] : [element('span', {}, 'Next attempt ', time(nextAttemptAt, place))]),
    ),
    element('h3', { id: heading }, code(eventType), ' ', element('span', { class: 'subject' }, foreign(subject))),
    element(
      'details',
      {},
      element('summary', {}, attempts.length === 1 ? '1 attempt' : `${attempts.length} attempts`),
      element('ol', { class: 'attempts' }, ...attempts.map((one) => attempt(one, place))),
    ),
    eventPart(delivery, settings),
    element(
      'div',
      { class: 'actions' },
      button('Send again from here', again, { class: 'quiet small', 'aria-describedby': heading }),
    ),
  );
}

/**
 * The event as it would be sent now: what the user may know of it can have changed.
 * @param {Delivery} delivery
 * @param {Promise<Pick<Settings, 'payload'>>} settings
 */
function eventPart({ cursor, sequence }, settings) {
  const body = element('div', {});
  const read = async () => {
    const { payload } = await settings;
    const query = new URLSearchParams({ take: '1', payload, ...(cursor ? { cursor } : {}) });
    /** @type {Page<{ sequence: string }>} */
    const { records } = await call(`/events?${query}`);
    const event = records.find((one) => one.sequence === sequence);
    if (!event) return element('p', {}, 'You may not read this event any more, or it is no longer kept.');
    return element('pre', { tabindex: '0', 'aria-label': 'The event' }, JSON.stringify(event, null, 2));
  };
  const show = async () => {
    if (body.childElementCount > 0) return;
    try {
      fill(body, await read());
    } catch (error) {
      fill(body, failureBox('The event cannot be shown', error));
    }
  };
  return element('details', { toggle: () => void show() }, element('summary', {}, 'The event'), body);
}

/**
 * @param {Attempt} attempt
 * @param {Place} place
 */
function attempt({ at, status, latencyMs, responseHead, failure }, place) {
  const outcome = status === null ? (failure ?? 'No answer') : `Answered ${status}`;
  return element(
    'li',
    {},
    element(
      'p',
      { class: 'facts' },
      time(at, place),
      element('span', {}, `${latencyMs} ms`),
      element('strong', {}, foreign(outcome)),
    ),
    ...(responseHead ? [element('pre', { tabindex: '0', 'aria-label': 'Beginning of the answer' }, responseHead)] : []),
  );
}

/**
 * @param {string} at
 * @param {Place} place
 */
const time = (at, place) => element('time', { datetime: at }, moment(at, place, 'medium'));
