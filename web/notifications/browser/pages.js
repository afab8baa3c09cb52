/** Shows the notifications or the preferences to a signed-in user, and follows links without leaving the page. */
import { announce, button, byId, fill } from '../../shared/elements.js';
import { identify, listen, signInProblem } from '../../shared/navigation.js';
import { SignInFailed } from '../../shared/sign-in.js';
import { failureBox } from './failure.js';
import { showList } from './list.js';
import { showPreferences } from './preferences.js';

const main = byId('main');
/** Number of the current navigation: results for an earlier one are discarded. */
let asked = 0;

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
  try {
    const place = await identify();
    const view = new URLSearchParams(location.search).get('view');
    const [title, parts] = await (view === 'preferences' ? showPreferences(place) : showList(view, place, go));
    if (question !== asked) return;
    fill(main, ...parts);
    document.title = `${title} · ERP platform`;
    document.body.dataset['shown'] = 'true';
    if (moved) main.querySelector('h1')?.focus();
  } catch (error) {
    if (question === asked) fail(error);
  } finally {
    if (question === asked) document.body.removeAttribute('aria-busy');
  }
}

/** @param {unknown} error */
function fail(error) {
  document.title = 'Problem · ERP platform';
  if (error instanceof SignInFailed) fill(main, signInProblem(error));
  else {
    const again = button('Try again', () => void show(true));
    fill(main, failureBox('The notifications cannot be shown', error, again));
  }
  announce(document.title);
}

/** @param {unknown} refused why there is no sign-in; null: there is one */
export async function begin(refused) {
  listen(go, () => void show(true));
  if (refused === null) await show(false);
  else fail(refused);
}
