/** Identity, links and sign-out of a page that changes its view without being loaded again. */
import { askIn, call } from './api.js';
import { watchUnread } from './bell.js';
import { button, byId, fill, foreign, problem } from './elements.js';
import { knownLocale, knownTimezone } from './format.js';
import { speakTo } from './language.js';
import { accessToken, revoke } from './sign-in.js';
import { common } from './words.js';

/** @import { Identity, Person } from './types.d.ts' */

const { home = '' } = document.body.dataset;

/**
 * Names the signed-in user in the header, and starts to count unread notifications there.
 * @returns {Promise<Person>} rejects with CallFailed
 */
export async function identify() {
  const { user, tenant } = /** @type {Identity} */ (await call('/identity'));
  watchUnread();
  fill(byId('who'), foreign(user.displayName), ' · ', foreign(tenant.name));
  const locale = knownLocale(user.locale) ?? navigator.language;
  askIn(locale);
  speakTo(locale);
  return { locale, timezone: knownTimezone(user.timezone), userId: user.id, currency: tenant.defaultCurrency };
}

/** @param {Error} error the reason for a return without a token */
export const signInProblem = (error) =>
  problem(
    common('notSignedIn'),
    error.message,
    button(common('signIn'), () => void accessToken()),
  );

/**
 * @param {(address: string) => void} go follows a link to an address of this page, which has a query or none
 * @param {() => void} show shows the present address: the user has gone back or forward
 */
export function listen(go, show) {
  document.addEventListener('click', (event) => {
    const address = followed(event);
    if (address === null) return;
    event.preventDefault();
    go(address);
  });
  byId('leave').addEventListener('click', (event) => void leave(event));
  window.addEventListener('popstate', show);
}

/**
 * The address of this page that a click leads to; null: the browser handles the click.
 * @param {MouseEvent} event
 */
function followed(event) {
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (!link || event.defaultPrevented || event.button !== 0 || link.hash !== '') return null;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return null;
  const { origin, pathname, search } = new URL(link.href);
  const here = origin === location.origin && (pathname === home || pathname.startsWith(`${home}/`));
  return here ? pathname + search : null;
}

/** @param {MouseEvent} event */
async function leave(event) {
  event.preventDefault();
  await revoke();
  location.assign('/oauth2/logout');
}
