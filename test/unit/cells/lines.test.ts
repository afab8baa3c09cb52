/** Lines of files are the same, byte for byte, as if each record became JSON, the JSON values, and the values cells. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type CellForm, cellOf, csvLine } from '../../../lib/cells/cells.ts';
import { CsvWriter } from '../../../lib/cells/csv-writer.ts';
import { ExactNumber } from '../../../lib/json/exact-number.ts';
import { RowShape, RowWriter } from '../../../lib/json/row-writer.ts';
import { dataRow } from '../../support/data-row.ts';

type Row = readonly (string | null)[];

/** Columns as the database sends them, with the forms of their cells. */
const COLUMNS: readonly (readonly [name: string, oid: number, form: CellForm])[] = [
  ['id', 2950, 'text'],
  ['text', 25, 'text'],
  ['other', 1043, 'text'],
  ['count', 23, 'number'],
  ['amount', 25, 'number'],
  ['yes', 16, 'boolean'],
  ['at', 1184, 'text'],
  ['on', 1082, 'date'],
  ['lasts', 1186, 'text'],
  ['list', 114, 'list'],
  ['doc', 3802, 'json'],
  ['_etag', 25, 'text'],
];
const NAMES = COLUMNS.map(([name]) => name);
const FORMS = new Map(COLUMNS.map(([name, , form]) => [name, form]));
const newShape = (): RowShape => new RowShape(COLUMNS.map(([name, oid]) => ({ name, oid })));

interface File {
  readonly columns: readonly string[];
  readonly delimiter: string;
  readonly lineEnd: string;
}

const recordsOf = (rows: readonly Row[]): Record<string, unknown>[] => {
  const writer = new RowWriter(newShape());
  writer.append('[');
  for (const row of rows) writer.row(dataRow(row), 0);
  writer.append(']');
  return JSON.parse(writer.finish().toString(), (_name, value, { source }: { source?: string } = {}) =>
    typeof value === 'number' && source !== undefined && String(value) !== source ? new ExactNumber(source) : value,
  );
};

const expectedCsv = (rows: readonly Row[], { columns, delimiter, lineEnd }: File): string =>
  recordsOf(rows)
    .map((record) => columns.map((name) => cellOf(record[name], FORMS.get(name) ?? 'text')))
    .map((cells) => csvLine(cells, delimiter) + lineEnd)
    .join('');

function csvOf(rows: readonly Row[], file: File): string {
  // Nearly no room, so that the buffer grows everywhere.
  const writer = new CsvWriter(newShape(), { ...file, forms: FORMS }, 1);
  for (const row of rows) writer.row(dataRow(row), 0);
  return writer.finish().toString();
}

function ndjsonOf(rows: readonly Row[], lineEnd: string): string {
  const writer = new RowWriter(newShape(), lineEnd, 1);
  for (const row of rows) writer.row(dataRow(row), 0);
  return writer.finish().toString();
}

const ODD_TEXTS = [
  ...[
    '',
    ' ',
    '=1+1',
    "'=x",
    "''@",
    "'",
    '-',
    '+49',
    '@a',
    '\tx',
    '\rx',
    'a\rb',
    '"',
    '""',
    'a"b',
    ',',
    ';',
    '|',
    '\n',
  ],
  ...[
    'é',
    'né',
    'aé',
    '\u00a0a',
    'a\u00a0',
    '\ufeffa',
    'a\u2028',
    'a\u3000',
    '\u{1f600}',
    'a ',
    ' a',
    'a\u0001b',
    '\\',
    '\u007f',
  ],
];
const text = fc.oneof(
  fc.constantFrom(...ODD_TEXTS),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ maxLength: 40 }),
);
const pgText = text.map((value) => value.replaceAll('\u0000', ''));
const number = fc.constantFrom('0', '-1', '12', '12345678901234567890.123456789', '1E+2', '-0.00', '1.50');
const document = fc.oneof(
  fc.json(),
  number.map((digits) => `{"n": ${digits}, "b": [${digits}, null], "10": 1, "2": "é\\u0007"}`),
  pgText.map((value) => JSON.stringify(value)),
);
const cells: Record<string, fc.Arbitrary<string>> = {
  id: fc.uuid(),
  count: fc.integer().map(String),
  amount: number,
  yes: fc.constantFrom('t', 'f'),
  at: fc.constantFrom('2026-01-02 03:04:05.6+00', '2022-01-01 00:10:00+00'),
  on: fc.constantFrom('2026-01-02', '0044-03-15 BC'),
  lasts: fc.constantFrom('PT1H', '-PT1H', 'P1D'),
  list: fc.array(pgText, { maxLength: 4 }).map((list) => JSON.stringify(list)),
  doc: document,
  _etag: fc.constantFrom('"1"', '"a2"'),
};
const row = fc.tuple(...NAMES.map((name) => fc.option(cells[name] ?? pgText)));
const file = fc.record({
  columns: fc.shuffledSubarray([...NAMES, 'hidden'], { minLength: 1 }),
  delimiter: fc.constantFrom(',', ';', '|', '\t'),
  lineEnd: fc.constantFrom('\n', '\r\n'),
});

describe('lines of files', () => {
  it('of CSV are the cells of the values', () => {
    fc.assert(
      fc.property(fc.array(row, { maxLength: 8 }), file, (rows, asked) => {
        assert.equal(csvOf(rows, asked), expectedCsv(rows, asked));
      }),
      { numRuns: 500 },
    );
  });

  it('of CSV keep each odd text', () => {
    const rows = ODD_TEXTS.map((odd) => NAMES.map((name) => (name === 'text' || name === 'other' ? odd : null)));
    for (const delimiter of [',', ';', '|', '\t']) {
      const asked = { columns: NAMES, delimiter, lineEnd: '\n' };
      assert.equal(csvOf(rows, asked), expectedCsv(rows, asked));
    }
  });

  it('of NDJSON are the JSON of the values', () => {
    fc.assert(
      fc.property(fc.array(row, { maxLength: 8 }), fc.constantFrom('\n', '\r\n'), (rows, lineEnd) => {
        const expected = recordsOf(rows).map((record) => JSON.stringify(record) + lineEnd);
        assert.equal(ndjsonOf(rows, lineEnd), expected.join(''));
      }),
      { numRuns: 500 },
    );
  });
});
