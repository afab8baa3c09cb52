/** References of composite requests in texts. */
import assert from 'node:assert/strict';
import { hasReference, mapTexts, memberAt, piecesOf } from '../../../lib/json/references.ts';

const reference = (name: string, ...path: string[]): object => ({ name, path });

describe('references in texts', () => {
  for (const [text, pieces] of [
    ['', ['']],
    ['plain @ {x}', ['plain @ {x}']],
    ['@{a.id}', [reference('a', 'id')]],
    ['x@{a.b.0}y@{c_1.d}', ['x', reference('a', 'b', '0'), 'y', reference('c_1', 'd')]],
    ['@@{a.id}', ['@{a.id}']],
    ['@@@{a.id}', ['@@{a.id}']],
    ['@@{@{a.id}', ['@{', reference('a', 'id')]],
    ['@{a}', null],
    ['@{a.}', null],
    ['@{.id}', null],
    ['@{1.id}', null],
    ['@{a.id', null],
    [`@{${'a'.repeat(41)}.id}`, null],
    [`@{a.${'b'.repeat(1_000)}}`, null],
  ] as const)
    it(`reads ${JSON.stringify(text.slice(0, 50))}`, () => {
      assert.deepEqual(piecesOf(text), pieces);
      assert.equal(hasReference(text), pieces === null || pieces.some((piece) => typeof piece !== 'string'));
    });

  it('takes time in proportion to the text', () => {
    const long = '@{'.repeat(200_000);
    const began = process.cpuUsage().user;
    for (const text of [long, `@@{${long.replaceAll('@{', '@@{')}`, '@'.repeat(400_000)]) piecesOf(text);
    assert.ok(process.cpuUsage().user - began < 1_000_000);
  });

  it('finds own members alone, and replaces texts at any depth', () => {
    assert.equal(memberAt({ a: [{ b: 1 }] }, ['a', '0', 'b']), 1);
    for (const path of [['__proto__'], ['constructor', 'name'], ['a', 'length'], ['a', '-1']])
      assert.equal(memberAt({ a: [1] }, path), undefined);
    assert.deepEqual(
      mapTexts({ a: ['@{x.y}', 1, { b: 'plain' }] }, () => 2),
      { a: [2, 1, { b: 'plain' }] },
    );
  });
});
