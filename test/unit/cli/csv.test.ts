/** CSV of the command line: docs/reference/cli.md#reading-records. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { csvOf } from '../../../cli/output/csv.ts';

/** Reads CSV as RFC 4180 has it. */
function read(text: string): string[][] {
  const rows: string[][] = [];
  for (let at = 0, row: string[] = []; at < text.length; ) {
    const [whole = '', quoted, bare] = /^(?:"((?:[^"]|"")*)"|([^",\r\n]*))/.exec(text.slice(at)) ?? [];
    row.push(quoted === undefined ? (bare ?? '') : quoted.replaceAll('""', '"'));
    at += whole.length;
    if (text[at] === ',') at++;
    else {
      assert.equal(text.slice(at, at + 2), '\r\n');
      at += 2;
      rows.push(row);
      row = [];
    }
  }
  return rows;
}

describe('CSV', () => {
  it('round-trips, and neutralizes texts that look like formulas', () => {
    const cell = fc.oneof(
      fc.string(),
      fc.constantFrom('=1+1', '+x', '-', '@a', '\t=1', '\r=1', 'a,b', 'a"b', 'a\nb', ''),
    );
    fc.assert(
      fc.property(fc.array(fc.array(cell, { minLength: 1, maxLength: 4 }), { maxLength: 4 }), (rows) => {
        const found = read(csvOf(rows));
        assert.deepEqual(
          found.map((row, i) => row.map((text, j) => (text === `'${rows[i]![j]}` ? text.slice(1) : text))),
          rows,
        );
        for (const text of found.flat()) assert.ok(!/^[=@\t\r\n]/.test(text), JSON.stringify(text));
      }),
    );
  });

  it('keeps numbers and telephone numbers unchanged', () => {
    for (const text of ['-12.50', '+49 (30) 12-34', '-1,000.5', '0']) assert.match(csvOf([[text]]), /^"?[+\-0]/, text);
    for (const text of ['-2+3', '+49 30 x', '-cmd', '=1', '@A1', '+', '-1=2'])
      assert.match(csvOf([[text]]), /^"?'/, text);
  });
});
