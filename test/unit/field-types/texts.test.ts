/** Texts of callers before they are stored or compared. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseText } from '../../../lib/schema/field-types/common.ts';
import { assertPrompt } from '../../support/processor.ts';
import { aField } from '../../support/snapshots.ts';

const field = aField('Text__c', 'text');
const parse = (text: string, max = 100): string => {
  const result = parseText(text, field, '/Text__c', max);
  return result.ok ? String(result.value) : result.violation.code;
};
/** U+0301 and U+0323, which are sorted when a text is normalized. */
const MARKS = ['\u0301', '\u0323'];

describe('A text', () => {
  it('is kept in NFC', () => {
    assert.equal(parse('e\u0301'), '\u00e9');
    assert.equal(parse(`q${MARKS.join('')}`), 'q\u0323\u0301');
  });

  it('allows the combining marks that scripts need', () => {
    assert.equal(parse(`q${'\u0323'.repeat(30)}`), `q${'\u0323'.repeat(30)}`);
    assert.equal(parse(`q${'\u0323'.repeat(31)}`), 'FIELD_FORMAT_INVALID');
    assert.equal(parse(`${`q${'\u0323'.repeat(30)}`.repeat(3)}`), `q${'\u0323'.repeat(30)}`.repeat(3));
  });

  it('is measured in NFC: decomposed letters count once', () => {
    // Three marks over a Greek letter, in one character.
    const decomposed = '\u1f82'.normalize('NFD');
    assert.equal(decomposed.length, 4);
    assert.equal(parse(decomposed.repeat(100)), '\u1f82'.repeat(100));
    assert.equal(parse(decomposed.repeat(101)), 'FIELD_TOO_LONG');
    assert.equal(parse('\u{11099}\u{110ba}'.repeat(100)), '\u{1109a}'.repeat(100));
  });

  it('equals the result of normalize(), or is refused', () => {
    const text = fc.string({
      unit: fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(...MARKS)),
      maxLength: 200,
    });
    fc.assert(
      fc.property(text, (value) => {
        const nfc = value.normalize('NFC');
        const expected =
          !value.isWellFormed() || value.includes('\0') || /\p{M}{31}/u.test(value)
            ? ['FIELD_FORMAT_INVALID', 'FIELD_TOO_LONG']
            : [[...nfc].length > 100 ? 'FIELD_TOO_LONG' : nfc];
        assert.ok(expected.includes(parse(value)));
      }),
      { seed: Date.now(), numRuns: 500 },
    );
  });

  it('is normalized or refused in linear time', () => {
    for (const text of [
      MARKS.join('').repeat(500_000),
      `q${MARKS.join('').repeat(65_000)}`,
      `q${MARKS.join('').repeat(15)}`.repeat(4_000),
      '\u{1d15e}'.repeat(100_000),
      '\u0344'.repeat(100_000),
      '\uac00'.normalize('NFD').repeat(100_000),
    ])
      assertPrompt(text.slice(0, 3), () => parse(text, 131_072));
  });
});
