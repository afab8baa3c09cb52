/**
 * Values as cells of CSV, and cells as values. A text that a spreadsheet would take for a formula gets an apostrophe in front,
 * and loses it when it is imported: no text is lost, and no file does anything when it is opened. Pure.
 * Source: docs/reference/bulk.md#spreadsheets.
 */
import type { CellForm } from '../../../contracts/data/columns.ts';
import { JsonError, parseJson } from '../../../lib/json/parse.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { LocaleReader } from './locale.ts';

const ARMED = /^'*[=+\-@\t\r]/;
const DISARMED = /^'+[=+\-@\t\r]/;

/** A text that no spreadsheet computes. */
export const disarmed = (text: string): string => (ARMED.test(text) ? `'${text}` : text);

const armedAgain = (text: string): string => (DISARMED.test(text) ? text.slice(1) : text);

/** A cell that must be JSON is not. The message says where. */
export class CellError extends Error {
  override readonly name = 'CellError';
}

/** The value of a cell as a request body has it; an empty cell is null. `reader` null: numbers and dates are written as in JSON. Throws CellError. */
export function readCell(cell: string, form: CellForm, reader: LocaleReader | null): unknown {
  if (cell === '') return null;
  switch (form) {
    case 'number':
      return reader ? reader.number(cell) : cell.trim();
    case 'date':
      return reader ? reader.day(cell) : cell.trim();
    case 'boolean': {
      const word = cell.trim().toLowerCase();
      return word === 'true' || word === '1' ? true : word === 'false' || word === '0' ? false : cell;
    }
    case 'list': {
      const text = armedAgain(cell);
      return text.trimStart().startsWith('[') ? jsonOf(text) : text.split(';').map((one) => one.trim());
    }
    case 'json':
      return jsonOf(armedAgain(cell));
    case 'text':
      return armedAgain(cell);
  }
}

function jsonOf(text: string): unknown {
  try {
    return parseJson(text, LIMITS.json_depth_max);
  } catch (error) {
    if (error instanceof JsonError) throw new CellError(error.message);
    throw error;
  }
}

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
