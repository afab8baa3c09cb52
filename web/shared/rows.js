/**
 * The rows of a file of CSV or NDJSON as bytes, without reading their cells. The page of imports and `erp data import`
 * share it, so that it uses nothing of a browser or of Node alone. A row ends where the platform says that it does: at a
 * line end outside of quotes; lines without anything are no rows (docs/reference/bulk.md).
 */

/** @typedef {'csv' | 'ndjson'} Format */
/** @typedef {{ readonly rowNumber: number, readonly errors: readonly { message: string, column?: string }[] }} Unwritten */

/** Size of a part; an interrupted part is sent again as a whole. */
export const PART_BYTES = 8 * 1024 * 1024;
/** Media types of parts. */
export const TYPES = /** @type {const} */ ({ csv: 'text/csv', ndjson: 'application/x-ndjson' });
/** Column with the errors in a file of failed rows; imports ignore it. */
export const ERROR_COLUMN = '_error';

const QUOTE = 0x22;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;
const BOM = [0xef, 0xbb, 0xbf];
/** More than the platform accepts as a row. */
const ROW_MAX_BYTES = 8 * 1024 * 1024;

/** The file is not CSV, or a quote is not closed. */
export class RowTooLong extends Error {
  constructor() {
    super(`A row is longer than ${ROW_MAX_BYTES} bytes.`);
  }
}

/**
 * The rows with their line ends; the first one of CSV is the line of headers.
 * @param {AsyncIterable<Uint8Array>} source UTF-8
 * @param {Format} format
 * @returns {AsyncGenerator<Uint8Array>}
 */
export async function* rowsOf(source, format) {
  /** @type {Uint8Array} */
  let left = new Uint8Array(0);
  // Number of bytes of `left` that were scanned.
  let at = 0;
  let quoted = false;
  let blank = true;
  let first = true;
  for await (const chunk of source) {
    left = left.length === 0 ? chunk : joined([left, chunk]);
    if (first && left.length >= BOM.length) {
      first = false;
      if (BOM.every((byte, i) => left[i] === byte)) left = left.subarray(BOM.length);
    }
    let from = 0;
    for (; at < left.length; at++) {
      const byte = left[at];
      if (byte === QUOTE && format === 'csv') quoted = !quoted;
      if (quoted || (byte !== LF && byte !== CR)) {
        if (format === 'csv' || (byte !== SPACE && byte !== TAB)) blank = false;
        continue;
      }
      if (!blank) yield left.subarray(from, at + 1);
      from = at + 1;
      blank = true;
    }
    left = left.subarray(from);
    at -= from;
    if (left.length > ROW_MAX_BYTES) throw new RowTooLong();
  }
  if (!blank) yield left;
}

/**
 * Parts of whole rows, of about PART_BYTES; each part of CSV begins with the headers.
 * @param {AsyncIterable<Uint8Array>} rows
 * @param {Format} format
 * @returns {AsyncGenerator<Uint8Array<ArrayBuffer>>}
 */
export async function* partsOf(rows, format) {
  /** @type {Uint8Array[]} */
  let headers = [];
  /** @type {Uint8Array[]} */
  let part = [];
  let size = 0;
  for await (const row of rows) {
    if (format === 'csv' && headers.length === 0) {
      headers = [ended(row)];
      continue;
    }
    if (size > 0 && size + row.length > PART_BYTES) {
      yield joined([...headers, ...part]);
      part = [];
      size = 0;
    }
    part.push(ended(row));
    size += row.length;
  }
  if (size > 0) yield joined([...headers, ...part]);
}

/**
 * Adds the line end that the last row of a file may lack.
 * @param {Uint8Array} row
 */
const ended = (row) => (row.at(-1) === LF || row.at(-1) === CR ? row : joined([row, Uint8Array.of(LF)]));

/**
 * @param {readonly Uint8Array[]} chunks
 * @returns {Uint8Array<ArrayBuffer>}
 */
function joined(chunks) {
  const whole = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * A row without its line end.
 * @param {Uint8Array} row
 */
export const textOf = (row) => decoder.decode(row).replace(/[\r\n]$/, '');

/**
 * Positions of the cells in the text of a CSV row.
 * @param {string} text
 * @param {string} delimiter
 */
function placesOf(text, delimiter) {
  const places = [];
  let from = 0;
  let quoted = false;
  for (let at = 0; at <= text.length; at++) {
    if (text[at] === '"') quoted = !quoted;
    if (at < text.length && (quoted || text[at] !== delimiter)) continue;
    places.push({ from, to: at });
    from = at + 1;
  }
  return places;
}

/**
 * The cells of a row of CSV (RFC 4180).
 * @param {string} text
 * @param {string} delimiter
 */
export const cellsOf = (text, delimiter) =>
  placesOf(text, delimiter).map(({ from, to }) => {
    const cell = text.slice(from, to);
    return cell.length > 1 && cell.startsWith('"') && cell.endsWith('"')
      ? cell.slice(1, -1).replaceAll('""', '"')
      : cell;
  });

/**
 * The rows that were not written, as they stand in their file, each with its line end. CSV gets a column that says what
 * is wrong; where it has one from an earlier import, that is written anew.
 * @param {AsyncIterable<Uint8Array>} rows of the whole file
 * @param {AsyncIterator<Unwritten>} unwritten in the order of their numbers
 * @param {{ format: Format, delimiter: string }} form
 * @returns {AsyncGenerator<string>}
 */
export async function* failedRows(rows, unwritten, { format, delimiter }) {
  let next = await unwritten.next();
  let rowNumber = format === 'csv' ? -1 : 0;
  let column = -1;
  for await (const row of rows) {
    if (++rowNumber === 0) {
      const header = textOf(row);
      column = cellsOf(header, delimiter).findIndex((name) => name.trim() === ERROR_COLUMN);
      yield column < 0 ? `${header}${delimiter}${ERROR_COLUMN}\n` : `${header}\n`;
      continue;
    }
    if (next.done) return;
    if (next.value.rowNumber !== rowNumber) continue;
    const text = textOf(row);
    yield `${format === 'csv' ? explained(text, next.value, column, delimiter) : text}\n`;
    next = await unwritten.next();
  }
}

/**
 * @param {string} text
 * @param {Unwritten} unwritten
 * @param {number} column of the errors; -1: the row has none yet
 * @param {string} delimiter
 */
function explained(text, { errors }, column, delimiter) {
  const why = errors.map(({ column: of, message }) => (of ? `${of}: ${message}` : message)).join(' ');
  // Must not be a formula to a spreadsheet (docs/reference/bulk.md#spreadsheets).
  const cell = `"${(/^[=+\-@\t\r]/.test(why) ? `'${why}` : why).replaceAll('"', '""')}"`;
  if (column < 0) return `${text}${delimiter}${cell}`;
  const place = placesOf(text, delimiter)[column];
  return place ? `${text.slice(0, place.from)}${cell}${text.slice(place.to)}` : text;
}
