/** Reads the rows of an import. Chunks depend on its parts alone, so that after a crash the same chunk is read again. */
import type { CreateBody } from '../../../contracts/bulk.ts';
import type { ObjectColumns } from '../../../contracts/data/columns.ts';
import type { RowError, RowToWrite } from '../../../contracts/data/row-writes.ts';
import { pointerPart } from '../../../lib/errors/pointer.ts';
import { isObject } from '../../../lib/json/objects.ts';
import { JsonError, parseJson } from '../../../lib/json/parse.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { Blobs } from '../../../mixins/blobs/blobs.ts';
import type { BlobRow } from '../jobs/job.sql.ts';
import { CellError, readCell } from './cells.ts';
import { CONFIRMATION, ETAG, ID, nameOf, planColumns, type Target } from './columns.ts';
import { readCsv } from './csv.ts';
import { textOf } from './invalid.ts';
import { type LocaleReader, localeReader } from './locale.ts';

/** A row as it stands in its file. */
export interface FileRow {
  readonly rowNumber: number;
  /** Of CSV; null: the row is a line of NDJSON. */
  readonly header: readonly string[] | null;
  readonly cells: readonly string[];
}

type Written = { -readonly [K in keyof RowToWrite]: RowToWrite[K] };

/** The rows after the first `done` ones, in chunks small enough for one call to data. */
export async function* chunksOf(
  blobs: Blobs,
  form: Pick<CreateBody, 'format' | 'csv'>,
  parts: readonly BlobRow[],
  done: number,
): AsyncGenerator<readonly FileRow[]> {
  let chunk: FileRow[] = [];
  let length = 0;
  for await (const row of rowsOf(blobs, form, parts, done)) {
    const chars = row.cells.reduce((sum, cell) => sum + cell.length, 0);
    if (chunk.length === LIMITS.rows_max || (chunk.length > 0 && length + chars > LIMITS.bulk_chunk_max_bytes)) {
      yield chunk;
      chunk = [];
      length = 0;
    }
    chunk.push(row);
    length += chars;
  }
  if (chunk.length > 0) yield chunk;
}

async function* rowsOf(
  blobs: Blobs,
  form: Pick<CreateBody, 'format' | 'csv'>,
  parts: readonly BlobRow[],
  done: number,
): AsyncGenerator<FileRow> {
  const { format, csv } = form;
  let before = 0;
  for (const { key, bytes, rows } of parts) {
    if (before + rows > done) {
      const source = await blobs.read(key, { from: 0, bytes });
      let rowNumber = before;
      let header: readonly string[] | null = null;
      for await (const cells of format === 'csv' ? readCsv(source, csv) : readLines(source)) {
        if (format === 'csv' && header === null) {
          header = cells;
          continue;
        }
        rowNumber++;
        if (rowNumber > done) yield { rowNumber, header, cells };
      }
    }
    before += rows;
  }
}

/** The lines that are not blank, each as one cell. */
async function* readLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<readonly string[]> {
  let open: string[] = [];
  for await (const text of textOf(source)) {
    const lines = text.split(/[\r\n]/);
    const last = lines.pop() ?? '';
    for (const line of lines) {
      const whole = open.join('') + line;
      open = [];
      if (whole.trim() !== '') yield [whole];
    }
    open.push(last);
  }
  const whole = open.join('');
  if (whole.trim() !== '') yield [whole];
}

/** Converts a row for data; with `refused` if it cannot be read. */
type RowReader = (row: FileRow) => RowToWrite;

/** Reads rows of a job by the fields that the user sees now. The reader throws BULK_DATA_INVALID like planColumns. */
export function rowReader(job: CreateBody, object: ObjectColumns): RowReader {
  const reader = job.csv?.locale === undefined ? null : localeReader(job.csv.locale);
  const plans = new Map<readonly string[], readonly Target[]>();
  return ({ header, cells }) => {
    if (header === null) return rowOfLine(cells[0] ?? '', job);
    let targets = plans.get(header);
    if (!targets) plans.set(header, (targets = planColumns(header, job, object)));
    if (cells.length === header.length) return rowOfCells(cells, targets, job, reader);
    const message = `The number of cells of the row is ${cells.length}, that of columns of the file ${header.length}.`;
    return invalidRow(message);
  };
}

const invalidRow = (message: string): RowToWrite => ({ refused: [{ code: 'BULK_DATA_INVALID', message }] });

function rowOfCells(
  cells: readonly string[],
  targets: readonly Target[],
  { operation }: CreateBody,
  reader: LocaleReader | null,
): RowToWrite {
  const fields: Record<string, unknown> = {};
  const row: Written = {};
  const refused: RowError[] = [];
  for (const [place, cell] of cells.entries()) {
    const target = targets[place];
    if (!target) continue;
    if ('special' in target) {
      if (cell.trim() !== '') setSpecial(row, target.special, cell.trim());
      continue;
    }
    // In a new record an empty cell leaves the default of its field; in an existing one it clears the field.
    if (cell === '' && operation === 'create') continue;
    const { field, key } = target;
    try {
      const value = readCell(cell, key === null ? field.form : 'text', reader);
      fields[field.apiName] = key === null || value === null ? value : { [key]: value };
    } catch (error) {
      if (!(error instanceof CellError)) throw error;
      const pointer = `/fields/${pointerPart(field.apiName)}`;
      refused.push({ code: 'FIELD_FORMAT_INVALID', message: error.message, pointer });
    }
  }
  if (refused.length > 0) return { refused };
  if (operation !== 'delete') row.fields = fields;
  return row;
}

function rowOfLine(line: string, job: CreateBody): RowToWrite {
  let body: unknown;
  try {
    body = line.length > LIMITS.bulk_row_max_bytes ? null : parseJson(line, LIMITS.json_depth_max);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return invalidRow(error.message);
  }
  if (!isObject(body)) return invalidRow('The line must be a JSON object.');
  const row: Written = {};
  const fields: Record<string, unknown> = {};
  for (const [given, value] of Object.entries(body)) {
    const name = nameOf(given, job);
    if (name === null) continue;
    if (name === ID || name === ETAG || name === CONFIRMATION) {
      if (value === null) continue;
      if (typeof value !== 'string') return invalidRow(`${name} must be a string.`);
      setSpecial(row, name, value);
      continue;
    }
    const dot = name.indexOf('.');
    const field = dot < 0 ? name : name.slice(0, dot);
    if (Object.hasOwn(fields, field)) return invalidRow(`Two members stand for ${field.slice(0, 100)}.`);
    Object.defineProperty(fields, field, {
      value: dot < 0 || value === null ? value : { [name.slice(dot + 1)]: value },
      enumerable: true,
    });
  }
  if (job.operation !== 'delete') row.fields = fields;
  else if (Object.keys(fields).length > 0) return invalidRow('A row of a delete has id and _etag only.');
  return row;
}

function setSpecial(row: Written, name: string, value: string): void {
  if (name === ID) row.id = value;
  else if (name === CONFIRMATION) row.duplicateConfirmation = value;
  // Spreadsheets lose the quotes of an ETag.
  else row.ifMatch = value.startsWith('"') ? value : `"${value}"`;
}

/** The column of a file that a violation is about; undefined: it is about none. */
export function columnOf(pointer: string | undefined, { header }: FileRow, job: CreateBody): string | undefined {
  const [, first, second] = pointer?.split('/') ?? [];
  const field = first === 'fields' ? second : first === 'ifMatch' ? ETAG : first;
  if (field === undefined || field === '') return undefined;
  return header?.find((given) => nameOf(given, job)?.split('.', 1)[0] === field) ?? field;
}
