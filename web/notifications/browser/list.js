/** The notifications of the user, the newest first. */
import { call } from '../../shared/api.js';
import { countUnread, showUnread } from '../../shared/bell.js';
import { announce, button, element, fill, foreign } from '../../shared/elements.js';
import { failureBox } from '../../shared/failure.js';
import { moment } from '../../shared/format.js';

/** @import { Place } from '../../shared/types.d.ts' */
/** @import { Notification, NotificationList, Status } from './types.d.ts' */

const PAGE_SIZE = 25;
const HOME = '/notifications';

/**
 * `status` of the API; null: unread and read ones.
 * @typedef {{ view: string, label: string, status: Status | null, empty: [title: string, text: string] }} Tab
 */

/** @type {readonly [Tab, ...Tab[]]} */
const TABS = [
  {
    view: 'all',
    label: 'All',
    status: null,
    empty: [
      'You have no notifications',
      'You are notified when a record is assigned to you or shared with you, when an agent asks for your approval, and when a deployment or a job that you have started ends.',
    ],
  },
  {
    view: 'unread',
    label: 'Unread',
    status: 'unread',
    empty: ['You have read everything', 'Notifications that arrive stand here until you mark them as read.'],
  },
  {
    view: 'archived',
    label: 'Archived',
    status: 'archived',
    empty: ['Nothing is archived', 'Notifications that you archive stand here for up to 90 days.'],
  },
];

/**
 * Pages about what a notification is an occasion for, by the operation that reads it.
 * @type {[string, (params: Record<string, string>) => string][]}
 */
const PLACES = [
  // There is no page of events; a link shows the calendar in another program.
  ['calendar.events.get', () => '/account#calendar'],
  ['agent.approvals.get', ({ approvalId = '' }) => `/approvals/${approvalId}`],
  ['events.subscriptions.get', ({ subscriptionId = '' }) => `/events/${subscriptionId}`],
];
const PAGES = new Map(PLACES);

/**
 * @param {string | null} view
 * @param {Place} place
 * @param {(address: string) => void} go
 * @returns {Promise<[title: string, parts: Node[]]>}
 */
export async function showList(view, place, go) {
  const tab = TABS.find((one) => one.view === view) ?? TABS[0];
  /** @param {string | null} cursor */
  const read = async (cursor) => {
    const query = new URLSearchParams({
      take: String(PAGE_SIZE),
      ...(tab.status ? { status: tab.status } : {}),
      ...(cursor ? { cursor } : {}),
    });
    /** @type {NotificationList} */
    const page = await call(`/notifications?${query}`);
    showUnread(page.unreadCount);
    return page;
  };
  const { records, nextCursor, unreadCount } = await read(null);
  const [newest] = records;
  const parts = [
    element(
      'div',
      { class: 'title' },
      element('h1', { tabindex: '-1' }, 'Notifications'),
      ...(newest && unreadCount > 0 ? [markAll(newest, () => go(location.pathname + location.search))] : []),
    ),
    navigation(tab.view),
    ...(newest ? list(records, nextCursor, read, { tab, place }) : [emptiness(tab)]),
  ];
  return ['Notifications', parts];
}

/** @param {string} view */
export function navigation(view) {
  const links = [...TABS, { view: 'preferences', label: 'Preferences' }].map((one) =>
    element(
      'a',
      {
        href: one.view === TABS[0].view ? HOME : `${HOME}?view=${one.view}`,
        ...(one.view === view ? { 'aria-current': 'page' } : {}),
      },
      one.label,
    ),
  );
  return element('nav', { class: 'tabs', 'aria-label': 'Notifications' }, ...links);
}

/** @param {Tab} tab */
const emptiness = ({ empty: [title, text] }) =>
  element('div', { class: 'empty card' }, element('h2', {}, title), element('p', {}, text));

/**
 * Notifications that have arrived since the list was read stay unread.
 * @param {Notification} newest
 * @param {() => void} again
 */
function markAll({ createdAt }, again) {
  const said = element('div', { class: 'said' });
  const mark = async () => {
    made.toggleAttribute('disabled', true);
    try {
      const { updated } = await call('/notifications/mark-all-read', {
        body: { before: createdAt },
        key: crypto.randomUUID(),
      });
      announce(updated === 1 ? '1 notification marked as read' : `${updated} notifications marked as read`);
      again();
    } catch (error) {
      made.toggleAttribute('disabled', false);
      fill(said, failureBox('They were not marked as read', error));
    }
  };
  const made = button('Mark all as read', () => void mark(), { class: 'quiet small' });
  return element('div', {}, made, said);
}

/**
 * @param {Notification[]} records
 * @param {string | null} nextCursor
 * @param {(cursor: string | null) => Promise<NotificationList>} read
 * @param {{ tab: Tab, place: Place }} shown
 */
function list(records, nextCursor, read, shown) {
  const entries = element('ul', { class: 'notifications' }, ...records.map((one) => entry(one, shown)));
  const said = element('div', { class: 'said' });
  let cursor = nextCursor;
  const readMore = async () => {
    more.toggleAttribute('disabled', true);
    fill(said);
    try {
      const page = await read(cursor);
      const added = page.records.map((one) => entry(one, shown));
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

/** @type {Record<Status, string>} */
const DONE = { unread: 'Marked as unread', read: 'Marked as read', archived: 'Archived' };

/**
 * One notification with what the user can do about it. One that leaves the list keeps its place, so that the user can take
 * it back.
 * @param {Notification} notification
 * @param {{ tab: Tab, place: Place }} shown
 */
function entry(notification, { tab, place }) {
  const heading = `title-${notification.notificationId}`;
  const item = element('li', { class: 'card', tabindex: '-1', 'aria-labelledby': heading });
  const said = element('div', { class: 'said' });
  /** @param {Notification} now */
  const draw = (now) => {
    const { title, body, severity, record, actions, status, createdAt } = now;
    const gone = (status === 'archived') !== (tab.status === 'archived');
    item.classList.toggle('unread', status === 'unread');
    item.classList.toggle('gone', gone);
    /** @type {[label: string, status: Status][]} */
    const changes =
      status === 'archived'
        ? [['Move back from the archive', 'read']]
        : [status === 'unread' ? ['Mark as read', 'read'] : ['Mark as unread', 'unread'], ['Archive', 'archived']];
    const links = actions.flatMap(({ label, operationId, params }) => {
      const href = PAGES.get(operationId)?.(params);
      return href ? [element('a', { href }, LABELS.get(operationId) ?? foreign(label))] : [];
    });
    fill(
      item,
      element(
        'p',
        { class: 'facts' },
        ...(status === 'unread' ? [element('strong', { class: 'new' }, 'Unread')] : []),
        ...(status === 'archived' && gone ? [element('strong', {}, 'Archived')] : []),
        ...(severity === 'info' ? [] : [element('strong', { class: severity }, SEVERITIES[severity])]),
        element('time', { datetime: createdAt }, moment(createdAt, place)),
      ),
      element('h2', { id: heading, dir: 'auto' }, title),
      ...(record?.name && !gone ? [about(record, record.name)] : []),
      ...(body && !gone ? [element('p', { class: 'body', dir: 'auto' }, body)] : []),
      said,
      element(
        'div',
        { class: 'actions' },
        ...(gone ? [] : links),
        ...changes.map(([label, next]) =>
          button(label, () => void change(next), { class: 'quiet small', 'aria-describedby': heading }),
        ),
      ),
    );
  };
  /** @param {Status} status */
  const change = async (status) => {
    const buttons = item.querySelectorAll('button');
    for (const one of buttons) one.disabled = true;
    fill(said);
    try {
      const path = `/notifications/${notification.notificationId}`;
      draw(await call(path, { method: 'PATCH', body: { status }, key: crypto.randomUUID() }));
      announce(DONE[status]);
      void countUnread();
    } catch (error) {
      for (const one of buttons) one.disabled = false;
      fill(said, failureBox('It was not changed', error));
    }
    item.querySelector('button')?.focus();
  };
  draw(notification);
  return item;
}

/** Replaces labels of actions that do not fit the page which they lead to. */
const LABELS = new Map([['calendar.events.get', 'Calendar in your own program']]);

/**
 * @param {NonNullable<Notification['record']>} record
 * @param {string} name
 */
const about = ({ objectApiName, id }, name) =>
  element('p', { class: 'about', dir: 'auto' }, element('a', { href: `/app/${objectApiName}/${id}` }, name));

const SEVERITIES = { warning: 'Warning', critical: 'Critical' };
