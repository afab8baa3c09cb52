/** The table of failed rows. */
import { element, foreign } from '../../shared/elements.js';

/**
 * The row number in a spreadsheet, where the header is row 1.
 * @param {number} rowNumber
 * @param {import('../../shared/rows.js').Format} format
 */
export const rowInFile = (rowNumber, format) => (format === 'csv' ? rowNumber + 1 : rowNumber);

/**
 * @typedef {{ row: number, column: string | undefined, value?: string, message: string, code: string }} Problem
 */

/**
 * @param {Problem[]} problems
 * @param {Intl.NumberFormat} numbers
 * @param {boolean} valued the values are known
 */
export function problemTable(problems, numbers, valued) {
  const heads = ['Row', 'Column', ...(valued ? ['Value'] : []), 'Problem'];
  const rows = problems.map(({ row, column, value, message, code }) =>
    element(
      'tr',
      {},
      element('th', { scope: 'row', class: 'row-number' }, numbers.format(row)),
      element('td', { 'data-label': 'Column' }, column === undefined ? '–' : foreign(column)),
      ...(valued
        ? [
            element(
              'td',
              { 'data-label': 'Value', class: 'value' },
              ...(value ? [foreign(value)] : [element('span', { class: 'none' }, 'Empty')]),
            ),
          ]
        : []),
      element('td', { 'data-label': 'Problem', title: code }, foreign(message)),
    ),
  );
  return element(
    'div',
    { class: 'problems', role: 'region', tabindex: '0', 'aria-label': 'Rows that fail' },
    element(
      'table',
      {},
      element('thead', {}, element('tr', {}, ...heads.map((text) => element('th', { scope: 'col' }, text)))),
      element('tbody', {}, ...rows),
    ),
  );
}
