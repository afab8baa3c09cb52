/** Shows the page of the address to a signed-in user, and follows links without leaving the page. */
import { CallFailed } from '../../shared/api.js';
import { announce, button, byId, element, fill, problem } from '../../shared/elements.js';
import { identify, listen, signInProblem } from '../../shared/navigation.js';
import { SignInFailed } from '../../shared/sign-in.js';
import { showDashboard } from './dashboard.js';
import { showList } from './list.js';

/** @import { Place } from '../../shared/types.d.ts' */
/** @import { View } from './types.d.ts' */

const main = byId('main');
/** @type {View | null} */
let shown = null;
/** Counts what was asked for: an answer that comes after the next question is not shown. */
let asked = 0;

/** @type {Promise<Place> | null} */
let asking = null;

/** The user's language and time zone; the browser's language and UTC where the platform does not answer. */
function place() {
  asking ??= identify().catch((error) => {
    // The next view asks again.
    asking = null;
    if (!(error instanceof CallFailed)) throw error;
    return { locale: navigator.language, timezone: 'UTC' };
  });
  return asking;
}

/** @param {string} address */
function go(address) {
  history.pushState(null, '', address);
  void show(true);
}

/** @param {boolean} moved a link was followed: the focus goes to what it has led to */
async function show(moved) {
  const question = ++asked;
  document.body.setAttribute('aria-busy', 'true');
  delete document.body.dataset['shown'];
  shown?.close();
  shown = null;
  try {
    const [, , dashboardId] = location.pathname.split('/');
    const view = dashboardId ? await showDashboard(main, dashboardId, place, go) : await showList(main, place, go);
    if (question !== asked) {
      view.close();
      return;
    }
    shown = view;
    document.title = `${view.title} · ERP platform`;
    if (moved) main.querySelector('h1')?.focus();
    await view.ran;
  } catch (error) {
    if (question === asked) fail(error);
  } finally {
    if (question === asked) document.body.removeAttribute('aria-busy');
  }
}

/** @param {unknown} error */
function fail(error) {
  const again = button('Try again', () => void show(true));
  if (error instanceof SignInFailed) {
    document.title = 'Not signed in · ERP platform';
    fill(main, signInProblem(error));
  } else if (error instanceof CallFailed && error.status === 404) {
    document.title = 'No such dashboard · ERP platform';
    fill(main, problem('There is no such dashboard', 'It does not exist, or it is not shared with you.'));
  } else if (error instanceof CallFailed) {
    document.title = 'Problem · ERP platform';
    const way = error.status === 403 ? [element('p', {}, 'An administrator of your company can change that.')] : [];
    fill(
      main,
      problem('The dashboards cannot be shown', `${error.message} (${error.code})`, ...(error.passes ? [again] : way)),
    );
  } else {
    document.title = 'Problem · ERP platform';
    fill(main, problem('The dashboards cannot be shown', 'Something went wrong on this page.', again));
    throw error;
  }
  announce(document.title);
}

/** @param {unknown} refused why there is no sign-in; null: there is one */
export async function begin(refused) {
  listen(go, () => void show(true));
  // The chart library has run by then.
  if (document.readyState !== 'complete') await new Promise((done) => addEventListener('load', done, { once: true }));
  if (refused === null) await show(false);
  else fail(refused);
}
