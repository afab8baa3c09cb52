import assert from 'node:assert/strict';
import { isLocale, localeOf } from '../../../lib/values/locale.ts';
import { assertPrompt } from '../../support/processor.ts';

describe('language tags', () => {
  it('are canonicalized or refused', () => {
    assert.deepEqual(['EN', 'pt-br', 'zh-hant-tw'].map(localeOf), ['en', 'pt-BR', 'zh-Hant-TW']);
    assert.deepEqual(['', 'english language', 'xx_YY', '-'].map(localeOf), [null, null, null, null]);
    assert.deepEqual(['pt-BR', 'pt-br'].map(isLocale), [true, false]);
  });

  it('are refused at once when they are longer than a field for them', () => {
    const variants = Array.from({ length: 150_000 }, (_, i) => `0${i.toString(36).padStart(4, '0')}`);
    assert.equal(
      assertPrompt('a long locale', () => localeOf(`en-${variants.join('-')}`)),
      null,
    );
  });
});
