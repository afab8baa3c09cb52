/** Reads CSV (RFC 4180). */
import { Readable } from 'node:stream';
import { CsvError, type Options, parse } from 'csv-parse';
import { parse as parseAtOnce } from 'csv-parse/sync';
import type { CreateBody } from '../../../contracts/bulk.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { invalidData, textOf } from './invalid.ts';

type Csv = CreateBody['csv'];

const optionsOf = (csv: Csv): Options => ({
  delimiter: csv?.delimiter ?? ',',
  record_delimiter: ['\r\n', '\n', '\r'],
  skip_empty_lines: true,
  // A row with another number of cells is an outcome of its own.
  relax_column_count: true,
  max_record_size: LIMITS.bulk_row_max_bytes * 4,
});

/** The cells of each row, the headers first. */
export async function* readCsv(source: AsyncIterable<Uint8Array>, csv: Csv): AsyncGenerator<readonly string[]> {
  const text = Readable.from(textOf(source), { objectMode: true, highWaterMark: 1 });
  const parser = parse(optionsOf(csv));
  text.on('error', (error) => parser.destroy(error));
  try {
    for await (const cells of text.pipe(parser)) yield cells;
  } catch (error) {
    throw explained(error);
  } finally {
    text.destroy();
    parser.destroy();
  }
}

/** The names of the columns, by the text of the first row. */
export function readHeader(text: string, csv: Csv): readonly string[] {
  try {
    const [header = []]: string[][] = parseAtOnce(text, optionsOf(csv));
    return header;
  } catch (error) {
    throw explained(error);
  }
}

function explained(error: unknown): unknown {
  if (!(error instanceof CsvError)) return error;
  const line = Number(error['lines'] ?? 0);
  return invalidData(`Line ${line} is not valid CSV: ${REASONS[error.code] ?? 'it cannot be read'}.`, { line });
}

const REASONS: Readonly<Record<string, string>> = {
  CSV_INVALID_CLOSING_QUOTE: 'a closing quote is followed by something else than a delimiter',
  INVALID_OPENING_QUOTE: 'a cell that is not quoted contains a quote',
  CSV_QUOTE_NOT_CLOSED: 'a quote is not closed',
  CSV_MAX_RECORD_SIZE: 'it is too long',
};
