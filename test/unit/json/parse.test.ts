import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ExactNumber } from '../../../lib/json/exact-number.ts';
import { JsonError, parseJson, parseJsonBytes } from '../../../lib/json/parse.ts';
import { assertPrompt } from '../../support/processor.ts';

const refuses = (text: string, why: RegExp): void =>
  assert.throws(
    () => parseJson(text, 32),
    (error: unknown) => error instanceof JsonError && why.test(error.message),
    text.slice(0, 60),
  );

describe('Strict JSON', () => {
  it('reads every JSON value as JSON.parse does', () => {
    const seed = Date.now();
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        const text = JSON.stringify(value);
        if (text.includes('__proto__') || /\\u(0000|d[89ab])/i.test(text) || /\d{16}|e/.test(text)) return;
        assert.deepEqual(parseJson(text, 32), JSON.parse(text));
      }),
      { seed, numRuns: 500 },
    );
  });

  it('refuses duplicate names in an object, escaped or not', () => {
    for (const text of ['{"a":1,"a":1}', '{"a":1,"\\u0061":2}', '[{"x":{"b":null,"c":1,"b":2}}]', '{"":1,"":2}'])
      refuses(text, /duplicate property name/);
    assert.deepEqual(parseJson('{"a":{"a":1},"b":[{"a":1},{"a":2}]}', 32), { a: { a: 1 }, b: [{ a: 1 }, { a: 2 }] });
  });

  it('does not mistake colons, braces or escaped quotes inside strings for structure', () => {
    const value = { 'a:b': '{":":"\\"}', c: '\\', d: '"]', e: ':::' };
    assert.deepEqual(parseJson(JSON.stringify(value), 32), value);
  });

  it('refuses invalid JSON', () => {
    for (const text of [
      '',
      '{',
      '{"a":NaN}',
      '{"a":Infinity}',
      "{'a':1}",
      '{"a":01}',
      '{"a":1,}',
      '[1,]',
      '{"a":+1}',
      '"\n"',
    ])
      refuses(text, /not well-formed/);
    refuses('﻿{}', /not well-formed/);
  });

  it('allows 32 levels and refuses 33, naming the limit', () => {
    assert.ok(parseJson('['.repeat(32) + ']'.repeat(32), 32));
    assert.throws(
      () => parseJson('['.repeat(33) + ']'.repeat(33), 32),
      (error: unknown) => error instanceof JsonError && error.details?.['maxDepth'] === 32,
    );
    refuses('{"a":'.repeat(100_000), /deeper than 32/);
  });

  it('refuses integers that a double cannot hold, and numbers beyond its range', () => {
    assert.equal(parseJson('9007199254740991', 32), 9007199254740991);
    refuses('9007199254740992', /beyond/);
    refuses('-9007199254740993', /beyond/);
    refuses('1e400', /range/);
    refuses('1e-400', /range/);
    assert.equal(parseJson('0.0000000000000000000', 32), 0);
  });

  it('preserves decimals exactly: as a double if equal, else as the literal', () => {
    assert.equal(parseJson('0.1', 32), 0.1);
    assert.equal(parseJson('1234567890.12', 32), 1234567890.12);
    assert.equal(parseJson('0.30000000000000000', 32), 0.3);
    const exact = parseJson('{"a":[1,12345678901234567.891]}', 32) as { a: [number, ExactNumber] };
    assert.ok(exact.a[1] instanceof ExactNumber);
    assert.equal(exact.a[1].text, '12345678901234567.891');
    assert.equal(JSON.stringify(exact), '{"a":[1,12345678901234567.891]}');
  });

  it('refuses a number that is longer than any value', () => {
    const long = `1.${'1'.repeat(396)}e`;
    assert.ok(parseJson(`${long}1`, 32) instanceof ExactNumber);
    refuses(`${long}10`, /exceeds 400 characters/);
  });

  it('refuses more values than any request has, and more white space', () => {
    const list = (values: number): string => `[${'1,'.repeat(values - 1)}1]`;
    assert.equal((parseJson(list(70_000), 32) as unknown[]).length, 70_000);
    refuses(list(70_001), /more than 70000 values/);
    refuses(`{"a":[${'{},'.repeat(70_000)}{}]}`, /more than 70000 values/);
    const members = (count: number): string => `{${Array.from({ length: count }, (_, i) => `"${i}":1`)}}`;
    assert.equal(Object.keys(parseJson(members(15_000), 32) as object).length, 15_000);
    refuses(members(15_001), /more than 15000 members/);
    assert.equal(parseJson(`${' '.repeat(1_048_576)}1`, 32), 1);
    refuses(`${'\n'.repeat(1_048_577)}1`, /white space/);
    assert.equal(parseJson(`"${' '.repeat(2_000_000)}"`, 32), ' '.repeat(2_000_000));
  });

  it('parses any text in linear time', () => {
    const members = (make: (index: number) => string): string =>
      `{${Array.from({ length: 15_000 }, (_, index) => make(index)).join(',')}}`;
    const texts: [string, string][] = [
      ['zeros before the last digit', `{"a":1.${'0'.repeat(1_000_000)}1}`],
      ['numbers of many zeros', `[${`1.${'0'.repeat(390)}1,`.repeat(2_500)}1]`],
      ['digits', `[${'1'.repeat(1_000_000)}]`],
      ['members', members((index) => `"k${index}":1`)],
      [
        'members with a long number',
        members((index) => `"k${index}":${index === 0 ? '0.10000000000000000000001' : 1}`),
      ],
      ['members with numbers as names', members((index) => `"${index * 65_536}":1`)],
      ['escaped quotes', `"${'\\"'.repeat(500_000)}"`],
      ['escaped backslashes', `"${'\\\\'.repeat(500_000)}"`],
      ['an open string', `"${'\\"'.repeat(500_000)}`],
      ['commas', ','.repeat(1_000_000)],
      ['brackets', '[]'.repeat(500_000)],
      ['blanks', ' '.repeat(1_000_000)],
    ];
    for (const [about, text] of texts)
      assertPrompt(about, () => {
        try {
          parseJson(text, 32);
        } catch (error) {
          assert.ok(error instanceof JsonError, about);
        }
      });
  });

  it('never lets a body reach a prototype', () => {
    refuses('{"__proto__":{"admin":true}}', /__proto__/);
    refuses('{"a":[{"\\u005f_proto__":1}]}', /__proto__/);
    assert.deepEqual(parseJson('{"constructor":1,"toString":2}', 32), JSON.parse('{"constructor":1,"toString":2}'));
  });

  it('refuses U+0000 and lone surrogates, which PostgreSQL cannot store', () => {
    refuses('"\\u0000"', /U\+0000/);
    refuses('{"\\ud800":1}', /surrogate/);
    assert.equal(parseJson('"\\ud83d\\ude00"', 32), '😀');
    assert.equal(parseJson('"\\\\u0000"', 32), '\\u0000');
  });

  it('refuses bytes that are not UTF-8', () => {
    assert.throws(() => parseJsonBytes(Buffer.from([0x22, 0xff, 0x22]), 32), JsonError);
    assert.throws(() => parseJsonBytes(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), 32), JsonError);
    assert.equal(parseJsonBytes(Buffer.from('"ü"'), 32), 'ü');
  });
});
