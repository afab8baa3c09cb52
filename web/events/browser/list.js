/** The webhooks of the user, the newest first. */
import { call } from '../../shared/api.js';
import { button, element, fill, foreign } from '../../shared/elements.js';
import { failureBox } from '../../shared/failure.js';
import { moment } from '../../shared/format.js';
import { code, failures, reasonOf, stateBadge } from './words.js';

/** @import { Place, View } from '../../shared/types.d.ts' */
/** @import { Page, Subscription } from './types.d.ts' */

const PAGE_SIZE = 25;
const SHOWN_TYPES = 3;

/**
 * @param {Place} place
 * @returns {Promise<View>}
 */
export async function showList(place) {
  /**
   * @param {string | null} cursor
   * @returns {Promise<Page<Subscription>>}
   */
  const read = (cursor) =>
    call(`/events/subscriptions?${new URLSearchParams({ take: String(PAGE_SIZE), ...(cursor ? { cursor } : {}) })}`);
  const page = await read(null);
  const add = element('a', { href: '/events?view=new' }, 'New webhook');
  const parts = [
    element('div', { class: 'title' }, element('h1', { tabindex: '-1' }, 'Webhooks'), add),
    element('p', { class: 'lead' }, 'Events that you may know of are sent to other systems as they happen.'),
    ...(page.records.length === 0 ? [emptiness()] : growing('webhooks', page, read, (one) => entry(one, place))),
  ];
  return { title: 'Webhooks', parts };
}

function emptiness() {
  return element(
    'div',
    { class: 'empty card' },
    element('h2', {}, 'You have no webhooks'),
    element(
      'p',
      {},
      'A webhook tells a shop, a chat or a warehouse of changes as they happen. The receiver needs a public https address. ',
      element('a', { href: '/events?view=new' }, 'Set up a webhook'),
      ', or read ',
      element('a', { href: '/versions/latest/docs/guides/hear-of-what-happens' }, 'how to write a receiver'),
      '.',
    ),
  );
}

/**
 * @param {Subscription} subscription
 * @param {Place} place
 */
function entry({ subscriptionId, name, url, eventTypes, state, reason, failureCount, createdAt }, place) {
  const more = eventTypes.length - SHOWN_TYPES;
  const types = eventTypes.slice(0, SHOWN_TYPES).flatMap((type, at) => [at === 0 ? '' : ', ', code(type)]);
  return element(
    'li',
    { class: 'card', tabindex: '-1' },
    element(
      'p',
      { class: 'facts' },
      stateBadge(state),
      ...(failureCount > 0 ? [element('span', { class: 'bad' }, failures(failureCount))] : []),
      element('span', {}, 'Set up ', element('time', { datetime: createdAt }, moment(createdAt, place))),
    ),
    element('h2', {}, element('a', { href: `/events/${subscriptionId}` }, foreign(name))),
    element('p', { class: 'address' }, code(url)),
    element('p', { class: 'hint' }, ...types, ...(more > 0 ? [` and ${more} more`] : [])),
    ...(reason === null ? [] : [element('p', { class: 'bad' }, reasonOf(reason))]),
  );
}

/**
 * A list with a button that appends its next page.
 * @template Entry
 * @param {string} name
 * @param {Page<Entry>} first
 * @param {(cursor: string | null) => Promise<Page<Entry>>} read
 * @param {(entry: Entry) => HTMLElement} draw
 */
export function growing(name, { records, nextCursor }, read, draw) {
  const entries = element('ul', { class: name }, ...records.map(draw));
  const said = element('div', { class: 'said' });
  let cursor = nextCursor;
  const readMore = async () => {
    more.toggleAttribute('disabled', true);
    fill(said);
    try {
      const page = await read(cursor);
      const added = page.records.map(draw);
      entries.append(...added);
      cursor = page.nextCursor;
      more.hidden = cursor === null;
      added[0]?.focus();
    } catch (error) {
      fill(said, failureBox('No more can be shown', error));
    } finally {
      more.toggleAttribute('disabled', false);
    }
  };
  const more = button('Show more', () => void readMore(), { class: 'quiet small more', hidden: cursor === null });
  return [entries, said, more];
}
