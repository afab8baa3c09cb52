/**
 * The rows of a file of CSV or NDJSON as bytes, without reading their cells. A row ends where the platform says that it
 * does: at a line end outside of quotes; lines without anything are no rows (docs/reference/bulk.md).
 */
import { createReadStream } from 'node:fs';
import { usage } from '../failure.ts';

export type Format = 'csv' | 'ndjson';

const QUOTE = 0x22;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);
/** More than the platform takes as a row: the file is of another kind. */
const ROW_MAX_BYTES = 8 * 1024 * 1024;

/** The rows with their line ends; the first one of CSV is the line of headers. */
export async function* rowsOf(path: string, format: Format): AsyncGenerator<Buffer> {
  let left: Buffer = Buffer.alloc(0);
  /** Bytes of `left` that were looked at. */
  let at = 0;
  let quoted = false;
  let blank = true;
  let first = true;
  const source: AsyncIterable<Buffer> = createReadStream(path, { highWaterMark: 1024 * 1024 });
  for await (const chunk of source) {
    left = left.length === 0 ? chunk : Buffer.concat([left, chunk]);
    if (first && left.length >= BOM.length) {
      first = false;
      if (left.subarray(0, BOM.length).equals(BOM)) left = left.subarray(BOM.length);
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
    if (left.length > ROW_MAX_BYTES) throw usage(`${path} has a row of more than ${ROW_MAX_BYTES} bytes.`);
  }
  if (!blank) yield left;
}

/** The file in parts of whole rows, of about so many bytes; each part of CSV begins with the headers. */
export async function* partsOf(path: string, format: Format, bytes: number): AsyncGenerator<Buffer<ArrayBuffer>> {
  let headers: readonly Buffer[] = [];
  let part: Buffer[] = [];
  let size = 0;
  for await (const row of rowsOf(path, format)) {
    if (format === 'csv' && headers.length === 0) {
      headers = [ended(row)];
      continue;
    }
    if (size > 0 && size + row.length > bytes) {
      yield Buffer.concat([...headers, ...part]);
      part = [];
      size = 0;
    }
    part.push(row);
    size += row.length;
  }
  if (size > 0) yield Buffer.concat([...headers, ...part]);
}

/** The line of headers may be the only one, and without an end. */
const ended = (row: Buffer): Buffer => (isEnd(row.at(-1)) ? row : Buffer.concat([row, Buffer.from('\n')]));
const isEnd = (byte: number | undefined): boolean => byte === LF || byte === CR;

/** A row without its line end. */
export function textOf(row: Buffer): string {
  return row.toString('utf8').replace(/[\r\n]$/, '');
}
