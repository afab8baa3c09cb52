import assert from 'node:assert/strict';
import fc from 'fast-check';
import { strongEtags } from '../../../lib/values/etags.ts';
import { assertPrompt } from '../../support/processor.ts';

describe('If-Match', () => {
  it('names one strong ETag or several, up to ten', () => {
    assert.deepEqual(strongEtags('"1a"'), ['"1a"']);
    assert.deepEqual(strongEtags(' "1a" ,"2b",\t"3,c" '), ['"1a"', '"2b"', '"3,c"']);
    const ten = Array.from({ length: 10 }, (_, index) => `"${index}"`);
    assert.deepEqual(strongEtags(ten.join(', ')), ten);
    assert.equal(strongEtags([...ten, '"10"'].join(', ')), null);
  });

  it('is refused with anything else in it', () => {
    for (const header of ['', '*', 'W/"1a"', '"1a', '1a', '"1a" "2b"', '"1a",', ',"1a"', '"1a",,"2b"', '"1 a"', '"ü"'])
      assert.equal(strongEtags(header), null, header);
  });

  it('splits tags that a client joined', () => {
    const tag = fc.stringMatching(/^"[!#-~]{0,20}"$/);
    fc.assert(
      fc.property(fc.array(tag, { minLength: 1, maxLength: 10 }), fc.constantFrom(',', ', ', ' ,\t'), (tags, by) => {
        assert.deepEqual(strongEtags(tags.join(by)), tags);
      }),
      { seed: Date.now() },
    );
  });

  it('is read in time proportional to its length', () => {
    for (const header of ['"', '",', '"1",', ' ', '"1" ', '"1"\t,'])
      assertPrompt(header, () => strongEtags(header.repeat(64_000 / header.length)), 50);
  });
});
