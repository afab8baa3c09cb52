/**
 * Values of records as cells of CSV. A text that a spreadsheet would take for a formula gets an apostrophe in front, and loses it
 * when it is imported: no text is lost, and no file does anything when it is opened. Pure. Source: docs/reference/bulk.md#spreadsheets.
 */

/** The form of a field's value in a cell of a file. */
export type CellForm = 'text' | 'number' | 'date' | 'boolean' | 'list' | 'json';

const ARMED = /^'*[=+\-@\t\r]/;
const DISARMED = /^'+[=+\-@\t\r]/;

/** A text that no spreadsheet computes. */
export const disarmed = (text: string): string => (ARMED.test(text) ? `'${text}` : text);

/** The text that disarmed() was given. */
export const armedAgain = (text: string): string => (DISARMED.test(text) ? text.slice(1) : text);

/** A value of a record as a cell. */
export function cellOf(value: unknown, form: CellForm): string {
  if (value === null || value === undefined) return '';
  if (form === 'number' || form === 'boolean') return String(value);
  if (typeof value === 'string') return disarmed(value);
  const isPlainList =
    form === 'list' && Array.isArray(value) && value.every((one) => typeof one === 'string' && isPlain(one));
  return disarmed(isPlainList ? value.join(';') : JSON.stringify(value));
}

/** It can stand in a list of texts with semicolons between them. */
const isPlain = (text: string): boolean => !text.includes(';') && text.trim() === text && !text.startsWith('[');

/** A line of CSV, without its end. */
export const csvLine = (cells: readonly string[], delimiter = ','): string =>
  cells.map((cell) => (needsQuotes(cell, delimiter) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(delimiter);

const needsQuotes = (cell: string, delimiter: string): boolean =>
  cell.includes(delimiter) || /["\r\n]/.test(cell) || cell.trim() !== cell;
