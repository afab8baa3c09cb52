/** Shows a new import or the one of the address to a signed-in user, and follows links without leaving the page. */
import { CallFailed } from '../../shared/api.js';
import { announce, button, byId, element, fill, problem } from '../../shared/elements.js';
import { identify, listen, signInProblem } from '../../shared/navigation.js';
import { SignInFailed } from '../../shared/sign-in.js';
import { failureBox } from './failure.js';
import { showForm } from './form.js';
import { showJob } from './job.js';

/** @import { View } from './types.d.ts' */

const main = byId('main');
/** @type {View | null} */
let shown = null;
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
  for (const mark of ['shown', 'ended']) delete document.body.dataset[mark];
  shown?.close();
  shown = null;
  try {
    const place = await identify();
    const [, , jobId] = location.pathname.split('/');
    const view = jobId ? await showJob(main, jobId, place) : await showForm(main, place, go);
    if (question !== asked) {
      view.close();
      return;
    }
    shown = view;
    document.title = `${view.title} · ERP platform`;
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
  else if (error instanceof CallFailed && error.status === 404)
    fill(
      main,
      problem('There is no such import', 'It belongs to another user, or was removed after seven days.'),
      element('p', {}, element('a', { href: '/import' }, 'Import a spreadsheet')),
    );
  else
    fill(
      main,
      failureBox(
        'The imports cannot be shown',
        error,
        button('Try again', () => void show(true)),
      ),
    );
  announce(document.title);
}

/** @param {unknown} refused why there is no sign-in; null: there is one */
export async function begin(refused) {
  listen(go, () => void show(true));
  if (refused === null) await show(false);
  else fail(refused);
}
