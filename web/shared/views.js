/** Shows the view of an address to a signed-in user, and follows links without leaving the page. */
import { CallFailed } from './api.js';
import { announce, button, byId, element, fill } from './elements.js';
import { failureBox } from './failure.js';
import { listen, signInProblem } from './navigation.js';
import { SignInFailed } from './sign-in.js';
import { common } from './words.js';

/** @import { View } from './types.d.ts' */

/**
 * @typedef {object} Views
 * @property {(main: HTMLElement, go: (address: string) => void) => Promise<View>} open makes the view of the address
 * @property {string} problem title of the box when it cannot be shown; a getter where it depends on the user's language
 * @property {() => Node[]} [missing] shown where the API has found nothing
 */

/**
 * @param {Views} views
 * @returns {(refused: unknown) => Promise<void>} begins. `refused`: why there is no sign-in; null: there is one
 */
export function showViews(views) {
  const { open, missing } = views;
  const main = byId('main');
  /** @type {View | null} */
  let shown = null;
  /** Number of the current navigation: results for an earlier one are discarded. */
  let asked = 0;

  /** @param {string} address the present one is shown anew */
  const go = (address) => {
    if (address !== location.pathname + location.search) history.pushState(null, '', address);
    void show(true);
  };

  /** @param {boolean} moved a link was followed: the focus goes to what it has led to */
  const show = async (moved) => {
    const question = ++asked;
    document.body.setAttribute('aria-busy', 'true');
    for (const mark of ['shown', 'ended']) delete document.body.dataset[mark];
    shown?.close?.();
    shown = null;
    try {
      const view = await open(main, go);
      if (question !== asked) return view.close?.();
      shown = view;
      if (view.parts) fill(main, ...view.parts);
      document.title = `${view.title} · ERP platform`;
      if (moved) main.querySelector('h1')?.focus();
      await view.ran;
      if (question === asked) document.body.dataset['shown'] ??= 'true';
    } catch (error) {
      if (question === asked) fail(error);
    } finally {
      if (question === asked) document.body.removeAttribute('aria-busy');
    }
  };

  /** @param {unknown} error */
  const fail = (error) => {
    document.title = `${common('problem')} · ERP platform`;
    const status = error instanceof CallFailed ? error.status : null;
    if (error instanceof SignInFailed) fill(main, signInProblem(error));
    else if (missing && status === 404) fill(main, ...missing());
    else if (status === 403) fill(main, failureBox(views.problem, error, element('p', {}, common('askAdministrator'))));
    else
      fill(
        main,
        failureBox(
          views.problem,
          error,
          button(common('tryAgain'), () => void show(true)),
        ),
      );
    announce(document.title);
  };

  return async (refused) => {
    listen(go, () => void show(true));
    if (refused === null) await show(false);
    else fail(refused);
  };
}
