/** Boxes for errors: the message of the API, and each of its violations. */
import { CallFailed } from './api.js';
import { element, foreign, problem } from './elements.js';
import { common } from './words.js';

/**
 * @param {string} title
 * @param {unknown} error
 * @param {...Node} more
 */
export function failureBox(title, error, ...more) {
  if (!(error instanceof CallFailed)) {
    // A defect of this page: logged to the console as well.
    reportError(error);
    return problem(title, common('brokenPage'), ...more);
  }
  const named = error.errors.map(({ message }) => message).filter((message) => message !== error.message);
  return problem(
    title,
    `${error.message} (${error.code})`,
    ...(named.length > 0 ? [element('ul', {}, ...named.map((text) => element('li', {}, foreign(text))))] : []),
    ...more,
  );
}

/**
 * Shows a box and moves the focus to it, so that it is read.
 * @param {Element} place
 * @param {HTMLElement} box
 */
export function showBox(place, box) {
  box.tabIndex = -1;
  place.replaceChildren(box);
  box.focus();
}
