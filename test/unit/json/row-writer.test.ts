import assert from 'node:assert/strict';
import fc from 'fast-check';
import { RowShape, RowWriter, rowTexts } from '../../../lib/json/row-writer.ts';
import { dataRow } from '../../support/data-row.ts';

const TEXT = 25;

function write(columns: { name: string; oid: number }[], rows: (string | null)[][]): unknown {
  const writer = new RowWriter(new RowShape(columns));
  writer.append('[');
  for (const row of rows) writer.row(dataRow(row), 0);
  writer.append(']');
  return JSON.parse(writer.finish().toString());
}

describe('rows from the wire as JSON', () => {
  it('writes each type in its JSON form', () => {
    const columns = [
      { name: 'id', oid: 2950 },
      { name: 'n', oid: 1700 },
      { name: 'yes', oid: 16 },
      { name: 'no', oid: 16 },
      { name: 'at', oid: 1184 },
      { name: 'on', oid: 1082 },
      { name: 'doc', oid: 3802 },
      { name: 'none', oid: TEXT },
    ];
    const row = ['0193', '10.50', 't', 'f', '2026-01-02 03:04:05.6+00', '2026-01-02', '{"a": [1]}', null];
    const writer = new RowWriter(new RowShape(columns));
    writer.row(dataRow(row), 0);
    assert.equal(
      writer.finish().toString(),
      '{"id":"0193","n":10.50,"yes":true,"no":false,"at":"2026-01-02T03:04:05.6+00:00","on":"2026-01-02","doc":{"a": [1]},"none":null}',
    );
  });

  it('preserves texts of any content and length', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.option(fc.string({ unit: 'binary', maxLength: 300 })), { minLength: 3, maxLength: 3 }), {
          maxLength: 60,
        }),
        (rows) => {
          const texts = rows.map((row) => row.map((text) => text?.replaceAll('\u0000', '') ?? null));
          const columns = ['a', 'b "quoted"', 'c'].map((name) => ({ name, oid: TEXT }));
          assert.deepEqual(
            write(columns, texts),
            texts.map((row) => ({ a: row[0], 'b "quoted"': row[1], c: row[2] })),
          );
        },
      ),
    );
  });

  it('returns the columns after the shape unchanged', () => {
    const row = dataRow(['x', 'key', null, '7']);
    const writer = new RowWriter(new RowShape([{ name: 'a', oid: TEXT }]));
    writer.row(row, 0);
    assert.equal(writer.finish().toString(), '{"a":"x"}');
    assert.deepEqual(rowTexts(row, 0, 1), ['key', null, '7']);
  });

  it('refuses an unknown type', () => {
    assert.throws(() => new RowShape([{ name: 'a', oid: 1009 }]), /type 1009/);
  });
});
