/** The number of unread notifications in the header of every page for signed-in users. */
import { byId } from './elements.js';
import { hasScope, heldToken } from './sign-in.js';
import { common } from './words.js';

const PERIOD_MS = 60_000;
const SHOWN_MAX = 99;

let watching = false;

/** Counts now, and every minute while the page is visible. Without the scope there is no bell. */
export function watchUnread() {
  if (watching) return;
  watching = true;
  if (!hasScope('notifications:read')) return byId('bell').remove();
  let countedAt = -PERIOD_MS;
  const count = () => {
    if (document.hidden) return;
    countedAt = performance.now();
    void countUnread();
  };
  count();
  setInterval(count, PERIOD_MS);
  document.addEventListener('visibilitychange', () => {
    if (performance.now() - countedAt >= PERIOD_MS) count();
  });
}

/**
 * Without an answer the last count stays. Not by `call`: where the token has ended, that would leave the page, and what the
 * user has filled in, for the sign-in.
 */
export async function countUnread() {
  const token = heldToken();
  if (token === null) return;
  const response = await fetch('/api/v1/notifications?status=unread&take=1', {
    headers: { authorization: `Bearer ${token}` },
    cache: 'no-store',
  }).catch(() => null);
  if (response?.ok) showUnread((await response.json()).unreadCount);
}

/** @param {number} count */
export function showUnread(count) {
  const badge = byId('unread');
  badge.hidden = count === 0;
  badge.textContent = count > SHOWN_MAX ? `${SHOWN_MAX}+` : String(count);
  byId('bell').setAttribute('aria-label', count === 0 ? common('notifications') : common('unread')(count));
}
