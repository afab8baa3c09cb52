/** Cells of CSV as values. Pure. Source: docs/reference/bulk.md#columns. */
import { armedAgain, type CellForm } from '../../../lib/cells/cells.ts';
import { JsonError, parseJson } from '../../../lib/json/parse.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { LocaleReader } from './locale.ts';

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
