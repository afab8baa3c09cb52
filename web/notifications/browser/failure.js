/** Boxes for errors: the message of the API, and each of its violations. */
import { CallFailed } from '../../shared/api.js';
import { element, foreign, problem } from '../../shared/elements.js';

/**
 * @param {string} title
 * @param {unknown} error
 * @param {...Node} more
 */
export function failureBox(title, error, ...more) {
  if (!(error instanceof CallFailed)) {
    // A defect of this page: logged to the console as well.
    reportError(error);
    return problem(title, 'Something went wrong on this page.', ...more);
  }
  const violations = error.errors.map(({ message }) => element('p', {}, foreign(message)));
  return problem(title, `${error.message} (${error.code})`, ...violations, ...more);
}
