/** Reads files in slices, so that only a few megabytes are in memory, and detects encoding and delimiter. */
import { cellsOf, ERROR_COLUMN, PART_BYTES, partsOf, rowsOf, textOf } from '../../shared/rows.js';

/** @import { Format } from '../../shared/rows.js' */
/** @import { Sample, Source } from './types.d.ts' */

/** Limits of a bulk job. */
const LIMITS = { fileBytes: 1024 * 1024 * 1024, columns: 500 };
/** Rows that are tried out before the import. */
const SAMPLE_ROWS = 100;
/** Workbooks are archives. */
const ZIP = [0x50, 0x4b, 0x03, 0x04];
const STEP_BYTES = 1024 * 1024;
/** Number of rows by which the delimiter is detected. */
const COMPARED_ROWS = 20;

export const DELIMITERS = /** @type {const} */ ([
  [',', 'Comma ( , )'],
  [';', 'Semicolon ( ; )'],
  ['\t', 'Tab'],
  ['|', 'Bar ( | )'],
]);

export const ENCODINGS = /** @type {const} */ ([
  ['utf-8', 'UTF-8'],
  ['windows-1252', 'Western European (Windows-1252)'],
  ['iso-8859-15', 'Western European (ISO 8859-15)'],
  ['windows-1250', 'Central European (Windows-1250)'],
  ['windows-1251', 'Cyrillic (Windows-1251)'],
  ['windows-1253', 'Greek (Windows-1253)'],
  ['windows-1254', 'Turkish (Windows-1254)'],
  ['shift_jis', 'Japanese (Shift JIS)'],
  ['gb18030', 'Chinese (GB 18030)'],
  ['utf-16le', 'UTF-16, little endian'],
  ['utf-16be', 'UTF-16, big endian'],
]);

/** The file cannot be imported, in words for people. */
export class FileRefused extends Error {}

/**
 * @param {File} file
 * @returns {Promise<Source>}
 */
export async function openFile(file) {
  const format = formatOf(file.name);
  if (file.size === 0) throw new FileRefused(`${file.name} is empty.`);
  if (file.size > LIMITS.fileBytes)
    throw new FileRefused(`${file.name} is larger than 1 GiB. Split it, and import one part after the other.`);
  const head = await bytesAt(file, 0);
  if (ZIP.every((byte, i) => head[i] === byte)) throw new FileRefused(WORKBOOK);
  const encoding = await encodingOf(file, head);
  const source = { file, format, encoding, delimiter: ',' };
  return { ...source, delimiter: format === 'csv' ? await delimiterOf(source) : ',' };
}

const WORKBOOK =
  'This is a workbook, not CSV. Save the sheet as CSV (UTF-8) in your spreadsheet program, and choose that file.';

/**
 * @param {string} name
 * @returns {Format}
 */
function formatOf(name) {
  const ending = /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase() ?? '';
  if (['csv', 'tsv', 'txt'].includes(ending)) return 'csv';
  if (['ndjson', 'jsonl'].includes(ending)) return 'ndjson';
  if (['xlsx', 'xls', 'xlsm', 'ods', 'numbers'].includes(ending)) throw new FileRefused(WORKBOOK);
  throw new FileRefused(`${name} is neither CSV nor NDJSON by its name: .csv, .tsv, .txt, .ndjson and .jsonl are.`);
}

/**
 * @param {File} file
 * @param {number} from
 */
async function bytesAt(file, from) {
  try {
    return new Uint8Array(await file.slice(from, from + STEP_BYTES).arrayBuffer());
  } catch {
    throw new FileRefused(
      `${file.name} cannot be read: it has changed since it was chosen, or is gone. Choose it again.`,
    );
  }
}

/**
 * The content in UTF-8.
 * @param {Pick<Source, 'file' | 'encoding'>} source
 * @returns {AsyncGenerator<Uint8Array>}
 */
async function* contentOf({ file, encoding }) {
  const decoder = encoding === 'utf-8' ? null : new TextDecoder(encoding);
  const encoder = new TextEncoder();
  for (let from = 0; from < file.size; from += STEP_BYTES) {
    const bytes = await bytesAt(file, from);
    yield decoder ? encoder.encode(decoder.decode(bytes, { stream: true })) : bytes;
  }
  if (decoder) yield encoder.encode(decoder.decode());
}

/** @param {Source} source */
export const rowsOfFile = (source) => rowsOf(contentOf(source), source.format);

/**
 * Detects the encoding: by the byte order mark, else UTF-8 if the whole file is valid UTF-8, else Windows-1252.
 * @param {File} file
 * @param {Uint8Array} head
 */
async function encodingOf(file, head) {
  if (head[0] === 0xff && head[1] === 0xfe) return 'utf-16le';
  if (head[0] === 0xfe && head[1] === 0xff) return 'utf-16be';
  const decoder = new TextDecoder('utf-8', { fatal: true });
  try {
    for (let from = 0; from < file.size; from += STEP_BYTES)
      decoder.decode(from === 0 ? head : await bytesAt(file, from), { stream: true });
    decoder.decode();
    return 'utf-8';
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return 'windows-1252';
  }
}

/** @param {Source} source */
async function delimiterOf(source) {
  /** @type {string[]} */
  const texts = [];
  for await (const row of rowsOfFile(source)) if (texts.push(textOf(row)) === COMPARED_ROWS) break;
  return likeliestDelimiter(texts);
}

/**
 * The delimiter by which most rows have as many cells as the first one; of several, the one that makes more cells.
 * @param {string[]} texts of the first rows
 */
export function likeliestDelimiter(texts) {
  /** @param {string} delimiter */
  const marks = (delimiter) => {
    const [cells = 1, ...others] = texts.map((text) => cellsOf(text, delimiter).length);
    const like = others.filter((count) => count === cells).length / Math.max(1, others.length);
    return cells === 1 ? 0 : 1 + like * 1_000 + cells;
  };
  return DELIMITERS.map(([delimiter]) => delimiter).reduce((best, one) => (marks(one) > marks(best) ? one : best));
}

/**
 * @param {Source} source
 * @returns {Promise<Sample>}
 */
export async function sampleOf(source) {
  const { format, delimiter } = source;
  /** @type {Uint8Array[]} */
  const rows = [];
  let size = 0;
  for await (const row of rowsOfFile(source)) {
    rows.push(row);
    size += row.length;
    if (rows.length > SAMPLE_ROWS || size > PART_BYTES / 2) break;
  }
  if (format === 'ndjson') rows.splice(SAMPLE_ROWS);
  const { columns, cells } = format === 'csv' ? csvTable(rows, delimiter) : ndjsonTable(rows);
  if (columns.length > LIMITS.columns)
    throw new FileRefused(`The file has ${columns.length} columns; at most ${LIMITS.columns} are allowed.`);
  if (cells.length === 0) throw new FileRefused('The file has no rows below the names of the columns.');
  const part = await partsOf(listed(rows), format).next();
  return { columns, rows: cells, part: part.done ? null : part.value };
}

/** @param {Uint8Array[]} rows */
async function* listed(rows) {
  yield* rows;
}

/**
 * @param {Uint8Array[]} rows
 * @param {string} delimiter
 */
function csvTable(rows, delimiter) {
  const [header = [], ...cells] = rows.map((row) => cellsOf(textOf(row).replace(/^\ufeff/, ''), delimiter));
  return { columns: header.map((name) => name.trim()), cells };
}

/** @param {Uint8Array[]} rows */
function ndjsonTable(rows) {
  const objects = rows.map((row) => membersOf(textOf(row)));
  const columns = [...new Set(objects.flatMap((members) => Object.keys(members)))];
  const cells = objects.map((members) =>
    columns.map((name) => {
      const value = Object.hasOwn(members, name) ? members[name] : null;
      return value === null || value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);
    }),
  );
  return { columns, cells };
}

/**
 * Returns no members for a line that is not an object; the platform reports the error.
 * @param {string} line
 * @returns {Record<string, unknown>}
 */
function membersOf(line) {
  try {
    const value = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}

/**
 * Counts the rows without the names of the columns.
 * @param {Source} source
 * @param {AbortSignal} signal
 * @returns {Promise<number>}
 */
export async function countRows(source, signal) {
  let rows = source.format === 'csv' ? -1 : 0;
  for await (const _ of rowsOfFile(source)) {
    signal.throwIfAborted();
    rows++;
  }
  return Math.max(0, rows);
}

/**
 * Names that several columns share; the platform cannot distinguish them.
 * @param {string[]} columns
 */
export const repeatedNames = (columns) => [...new Set(columns.filter((name, at) => columns.indexOf(name) !== at))];

/** @param {string} name of a column */
export const isLeftOut = (name) => name === '' || name === ERROR_COLUMN;
