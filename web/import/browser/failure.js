/** Boxes for errors: those of the file, and those of the API. */
import { problem } from '../../shared/elements.js';
import { failureBox as boxOfApi } from '../../shared/failure.js';
import { RowTooLong } from '../../shared/rows.js';
import { FileRefused } from './file.js';

/**
 * @param {string} title
 * @param {unknown} error
 * @param {...Node} more
 */
export function failureBox(title, error, ...more) {
  if (error instanceof FileRefused) return problem(title, error.message, ...more);
  if (error instanceof RowTooLong)
    return problem(title, `${error.message} It is no CSV, or a quote is not closed.`, ...more);
  return boxOfApi(title, error, ...more);
}
