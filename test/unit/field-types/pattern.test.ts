import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  checkPattern,
  matchesPattern,
  newPatternBudget,
  PatternBudgetError,
  PatternError,
} from '../../../lib/values/pattern.ts';
import { assertPrompt, processorMs } from '../../support/processor.ts';

describe('patterns of text fields', () => {
  it('match the whole text', () => {
    assert.ok(matchesPattern('a|b', 'b'));
    assert.ok(!matchesPattern('a|b', 'ab'));
    assert.ok(matchesPattern('^a|b$', 'a'));
  });

  it('agree with JavaScript on common syntax', () => {
    const atom = fc.constantFrom(
      'a',
      'b',
      '.',
      '[ab]',
      '[^a]',
      '[a-c]',
      '\\d',
      '\\w',
      '\\.',
      '(?:ab)',
      '(a|bc)',
      '(?:)',
    );
    const piece = fc
      .tuple(atom, fc.constantFrom('', '*', '+', '?', '{2}', '{1,}', '{0,2}'))
      .map(([node, repeat]) => node + repeat);
    const pattern = fc
      .array(
        fc.array(piece, { maxLength: 4 }).map((pieces) => pieces.join('')),
        { minLength: 1, maxLength: 3 },
      )
      .map((choices) => choices.join('|'));
    const text = fc
      .array(fc.constantFrom('a', 'b', 'c', '1', '.', '😀'), { maxLength: 8 })
      .map((chars) => chars.join(''));
    fc.assert(
      fc.property(pattern, text, (source, value) => {
        assert.equal(matchesPattern(source, value), new RegExp(`^(?:${source})$`, 'u').test(value));
      }),
      { numRuns: 2000 },
    );
  });

  it('match any pattern in linear time', () => {
    const took = processorMs(() => {
      assert.ok(!matchesPattern('(a*)*b', 'a'.repeat(20_000)));
      assert.ok(!matchesPattern('(a|a)*(a|a)*(a|aa)*c', 'a'.repeat(20_000)));
    });
    assert.ok(took < 2_000);
  });

  it('share the steps of a request', () => {
    const budget = newPatternBudget();
    let fields = 0;
    assertPrompt('480 fields', () =>
      assert.throws(() => {
        for (; fields < 480; fields++) matchesPattern(`(?:a?){600}b*${fields}`, 'a'.repeat(800), budget);
      }, PatternBudgetError),
    );
    assert.ok(fields > 0 && fields < 10);
    assert.throws(() => matchesPattern('a', 'a', budget), PatternBudgetError);
    assert.ok(matchesPattern('a', 'a'), 'a value that is read alone has steps of its own');
  });

  it('count a class with many ranges as one step', () => {
    const ranges = Array.from({ length: 480 }, (_, index) => String.fromCodePoint(0x4e00 + 2 * index)).join('');
    const last = ranges.at(-1)!.repeat(800);
    assertPrompt('400 classes', () => assert.ok(!matchesPattern(`(?:[${ranges}]?){400}b`, last)), 100);
    assert.ok(matchesPattern(`[${ranges}]*`, ranges));
    assert.ok(!matchesPattern(`[${ranges}]*`, '\u4e01'));
    assert.ok(matchesPattern(`[^${ranges}]*`, '\u4e01'));
  });

  it('are refused when too large or outside the grammar', () => {
    for (const pattern of [
      '(',
      ')',
      '[a',
      'a{2',
      'a{3,2}',
      '*',
      '(?=a)',
      '\\1',
      '\\b',
      'a**',
      '(a{100}){100}',
      '((a{99}){99}){99}',
    ])
      assert.throws(() => checkPattern(pattern), PatternError, pattern);
    assert.throws(() => checkPattern('(?:(?:(?:(?:){999}){999}){999}){999}'), PatternError);
  });
});
