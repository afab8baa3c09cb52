/**
 * Rows as CSV (RFC 4180): commas, CRLF, quotes where they are needed. Spreadsheets calculate a text that begins like a
 * formula, so such a text gets an apostrophe in front; a number or a telephone number is none.
 */
const FORMULA = /^[=+\-@\t\r\n]/;
const NUMBER = /^[+-]?\d[\d .,()/-]*$/;

function cell(text: string): string {
  const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The lines of these rows, each with its line end. */
export const csvOf = (rows: readonly (readonly string[])[]): string =>
  rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
