/** What the page of imports finds in a file before anything is sent, and the rows that it shares with the command line. */
import assert from 'node:assert/strict';
import {
  guessColumns,
  guessLocale,
  guessOperation,
  jobOf,
  missingFields,
  problemsOf,
  targetsOf,
} from '../../../web/import/browser/columns.js';
import { likeliestDelimiter, openFile, repeatedNames, sampleOf } from '../../../web/import/browser/file.js';
import type { Description, Field, Settings } from '../../../web/import/browser/types.d.ts';
import { cellsOf, failedRows, partsOf, rowsOf, textOf } from '../../../web/shared/rows.js';

const field = (apiName: string, label: string, more: Partial<Field> = {}): Field => ({
  apiName,
  label,
  fieldType: 'text',
  editable: true,
  required: false,
  externalId: false,
  defaultedOnCreate: false,
  referenceTo: [],
  ...more,
});
const described = (apiName: string, label: string, fields: Field[], able = true): Description => ({
  apiName,
  label,
  labelPlural: `${label}s`,
  fields,
  capabilities: { creatable: true, updateable: able },
});
const ACCOUNT = described('Account', 'Account', [
  field('accountNumber', 'Account number', { externalId: true }),
  field('name', 'Account name', { required: true }),
  field('createdAt', 'Created', { editable: false }),
]);
const INVOICE = described('Invoice__c', 'Invoice', [
  field('id', 'Id', { editable: false }),
  field('LedgerNumber__c', 'Ledger number', { externalId: true }),
  field('Account__c', 'Customer', { fieldType: 'reference', referenceTo: ['Account'], required: true }),
  field('Amount__c', 'Amount', { fieldType: 'currency' }),
  field('DueDate__c', 'Due date', { fieldType: 'date' }),
]);
const REFERENCED = new Map([['Account', ACCOUNT]]);
const TARGETS = targetsOf(INVOICE, REFERENCED, 'create');

const settings = (columns: Record<string, string>, more: Partial<Settings> = {}): Settings => ({
  operation: 'create',
  externalIdField: 'LedgerNumber__c',
  columns,
  locale: '',
  duplicates: false,
  overwrite: false,
  ...more,
});

describe('columns of an import', () => {
  it('are guessed by name, label and the key of a reference', () => {
    assert.deepEqual(guessColumns(['ledger_number', 'CUSTOMER Account Number', 'amount', 'Notes'], TARGETS), {
      ledger_number: 'LedgerNumber__c',
      'CUSTOMER Account Number': 'Account__c.accountNumber',
      amount: 'Amount__c',
      Notes: '',
    });
    assert.deepEqual(guessColumns(['Account__c.accountNumber', 'Due-Date', 'due date'], TARGETS), {
      'Account__c.accountNumber': 'Account__c.accountNumber',
      'Due-Date': 'DueDate__c',
      'due date': '',
    });
  });

  it('say whether records are created, found by a key, or changed by their id', () => {
    assert.equal(guessOperation(['Amount'], INVOICE).operation, 'create');
    assert.deepEqual(guessOperation(['Ledger number'], INVOICE), {
      operation: 'upsert',
      externalIdField: 'LedgerNumber__c',
    });
    assert.equal(guessOperation(['id', 'Amount'], INVOICE).operation, 'update');
    const createOnly = described('Invoice__c', 'Invoice', INVOICE.fields, false);
    assert.equal(guessOperation(['id', 'Ledger number'], createOnly).operation, 'create');
  });

  it('offer only fields that can be written', () => {
    const names = targetsOf(ACCOUNT, new Map(), 'upsert').map(({ name }) => name);
    assert.deepEqual(names, ['_etag', 'name', 'accountNumber']);
  });

  it('are incomplete without the key, the id or the version, and with two for one field', () => {
    const of = (columns: Record<string, string>, more: Partial<Settings>) =>
      problemsOf(settings(columns, more), TARGETS).length;
    assert.equal(of({ A: '' }, {}), 1);
    assert.equal(of({ A: 'Amount__c' }, {}), 0);
    assert.equal(of({ A: 'Amount__c' }, { operation: 'upsert' }), 1);
    assert.equal(of({ A: 'Amount__c' }, { operation: 'update' }), 2);
    assert.equal(of({ A: 'id' }, { operation: 'update', overwrite: true }), 0);
    assert.equal(of({ A: 'Account__c', B: 'Account__c.accountNumber' }, {}), 1);
    assert.deepEqual(missingFields(settings({ A: 'Account__c.accountNumber' }), TARGETS), []);
    assert.deepEqual(missingFields(settings({ A: 'Amount__c' }), TARGETS), ['Customer']);
  });

  it('become the body of a job', () => {
    const given = settings({ A: 'Amount__c', B: '' }, { operation: 'upsert', locale: 'de-DE', overwrite: true });
    assert.deepEqual(jobOf('Invoice__c', { format: 'csv', delimiter: ';' }, given), {
      operation: 'upsert',
      objectApiName: 'Invoice__c',
      format: 'csv',
      csv: { delimiter: ';', locale: 'de-DE' },
      columns: { A: 'Amount__c', B: null },
      externalIdField: 'LedgerNumber__c',
    });
  });
});

describe('customs of a file', () => {
  const LOCALES = ['en-GB', 'en-US', 'de-DE'];
  const guess = (amounts: string[], days: string[]): string => {
    const rows = Array.from({ length: Math.max(amounts.length, days.length) }, (_, i) => [
      amounts[i] ?? '',
      days[i] ?? '',
    ]);
    const columns = { Amount: 'Amount__c', Due: 'DueDate__c' };
    return guessLocale({ columns: Object.keys(columns), rows, part: null }, columns, TARGETS, LOCALES);
  };

  it('are those of JSON, or of the first locale that fits all numbers and days', () => {
    assert.equal(guess(['1234.5', '-3'], ['2026-11-21']), '');
    assert.equal(guess([], []), '');
    assert.equal(guess(['1.234,50', 'none'], ['21.11.2026']), 'de-DE');
    assert.equal(guess(['1,234.50'], ['21/11/2026']), 'en-GB');
    assert.equal(guess(['1,234.50'], ['11/21/2026']), 'en-US');
    assert.equal(guess(['1,234.50', '1.234,50'], []), '');
  });
});

const utf8 = new TextEncoder();
async function* chunks(...texts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield typeof text === 'string' ? utf8.encode(text) : text;
}
const texts = (source: AsyncIterable<Uint8Array>, format: 'csv' | 'ndjson' = 'csv'): Promise<string[]> =>
  Array.fromAsync(rowsOf(source, format), textOf);

describe('rows of a file', () => {
  it('end outside of quotes, wherever the file is cut', async () => {
    const text = '\ufeffa,b\r\n"x\n""y""",1\r\n\r\n2,3';
    const expected = ['a,b', '"x\n""y""",1', '2,3'];
    const bytes = utf8.encode(text);
    assert.deepEqual(await texts(chunks(text)), expected);
    assert.deepEqual(await texts(chunks(...Array.from(bytes, (byte) => Uint8Array.of(byte)))), expected);
    assert.deepEqual(await texts(chunks('{"a":"\\""}\n  \n{}'), 'ndjson'), ['{"a":"\\""}', '{}']);
  });

  it('go into parts with the headers', async () => {
    const row = `${'x'.repeat(3 * 1024 * 1024)}\n`;
    const parts = await Array.fromAsync(partsOf(rowsOf(chunks('a\n', row, row, row.trim()), 'csv'), 'csv'));
    assert.deepEqual(
      parts.map((part) => part.length),
      [2 + 2 * row.length, 2 + row.length],
    );
    assert.ok(parts.every((part) => textOf(part).startsWith('a\nx')));
  });

  it('have cells between delimiters outside of quotes', () => {
    assert.deepEqual(cellsOf('1;"a;""b""";;" "', ';'), ['1', 'a;"b"', '', ' ']);
    assert.deepEqual(cellsOf('', ','), ['']);
  });

  it('that failed come back with the reason, also a second time', async () => {
    const failed = (reason: string) =>
      (async function* () {
        yield { rowNumber: 2, errors: [{ message: reason, column: 'b' }] };
      })();
    const form = { format: 'csv', delimiter: ',' } as const;
    const joined = async (text: string, reason: string): Promise<string> =>
      (await Array.fromAsync(failedRows(rowsOf(chunks(text), 'csv'), failed(reason), form))).join('');
    const first = await joined('a,b\n1,2\n3,"4\n5"\n6,7', 'is "odd".');
    assert.equal(first, 'a,b,_error\n3,"4\n5","b: is ""odd""."\n');
    assert.equal(await joined(`${first}8,9,old\n`, 'is even.'), 'a,b,_error\n8,9,"b: is even."\n');
  });
});

describe('a file', () => {
  const file = (name: string, ...parts: (string | Uint8Array<ArrayBuffer>)[]): File => new File(parts, name);

  it('is opened with its encoding and delimiter', async () => {
    const found = async (given: File) => {
      const { format, encoding, delimiter } = await openFile(given);
      return { format, encoding, delimiter };
    };
    const csv = { format: 'csv', encoding: 'utf-8', delimiter: ',' };
    assert.deepEqual(await found(file('a.csv', 'a,b\n1,2\n')), csv);
    assert.deepEqual(await found(file('a.csv', 'Größe;b\n1,5;2\n')), { ...csv, delimiter: ';' });
    const latin = Uint8Array.from('Gr\xf6\xdfe\tb\n1\t2\n', (char) => char.charCodeAt(0));
    assert.deepEqual(await found(file('a.tsv', latin)), { ...csv, encoding: 'windows-1252', delimiter: '\t' });
    const wide = new Uint8Array(Buffer.from('\ufeffa\tb\n1\t2\n', 'utf16le'));
    const source = await openFile(file('a.txt', wide));
    assert.deepEqual([source.encoding, source.delimiter], ['utf-16le', '\t']);
    assert.deepEqual(await sampleOf(source), {
      columns: ['a', 'b'],
      rows: [['1', '2']],
      part: utf8.encode('a\tb\n1\t2\n'),
    });
    assert.equal((await found(file('a.jsonl', '{}\n'))).format, 'ndjson');
  });

  it('is refused with the reason', async () => {
    for (const [given, reason] of [
      [file('a.xlsx', 'x'), /Save the sheet as CSV/],
      [file('a.csv', 'PK\u0003\u0004'), /Save the sheet as CSV/],
      [file('a.csv'), /empty/],
      [file('a.pdf', 'x'), /neither CSV nor NDJSON/],
    ] as const)
      await assert.rejects(openFile(given), reason);
    await assert.rejects(openFile(file('a.csv', 'a,b\n')).then(sampleOf), /no rows/);
  });

  it('has columns of one name that are told apart by nothing', () => {
    assert.deepEqual(repeatedNames(['a', 'b', 'a', 'a']), ['a']);
    assert.equal(likeliestDelimiter(['a;b', '1,5;2', '2,5;3']), ';');
    assert.equal(likeliestDelimiter(['name', 'a, b']), ',');
  });

  it('of NDJSON has the members of its first lines as columns', async () => {
    const source = await openFile(file('a.ndjson', '{"a":1}\n{"b":"x","a":null}\nnonsense\n'));
    const { columns, rows } = await sampleOf(source);
    assert.deepEqual(columns, ['a', 'b']);
    assert.deepEqual(rows, [
      ['1', ''],
      ['', 'x'],
      ['', ''],
    ]);
  });
});
