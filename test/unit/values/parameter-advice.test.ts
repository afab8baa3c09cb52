/** Which parameter was meant: docs/reference/querying.md. */
import assert from 'node:assert/strict';
import { parameterAdvice } from '../../../lib/values/parameter-advice.ts';
import { assertPrompt } from '../../support/processor.ts';

const LIST = ['fields', 'expand', 'filters', 'sort', 'search', 'take', 'skip', 'cursor', 'includeTotal'];

describe('suggested parameter', () => {
  it('is the equivalent of a name from other APIs', () => {
    for (const [name, meant] of Object.entries({
      limit: 'take',
      offset: 'skip',
      page: 'skip',
      per_page: 'take',
      pageSize: 'take',
      $top: 'take',
      order: 'sort',
      'order-by': 'sort',
      filter: 'filters',
      q: 'search',
      select: 'fields',
      include: 'expand',
      starting_after: 'cursor',
    }))
      assert.equal(parameterAdvice(name, LIST), ` Did you mean ${meant}?`, name);
  });

  it('is a parameter of the operation', () => {
    assert.equal(parameterAdvice('page', ['take', 'cursor']), ' Did you mean cursor?');
    assert.equal(parameterAdvice('limit', ['from', 'to']), '');
  });

  it('is a similar name otherwise, or none', () => {
    assert.equal(parameterAdvice('includeTotals', LIST), ' Did you mean includeTotal?');
    assert.equal(parameterAdvice('Fields', LIST), ' Did you mean fields?');
    for (const name of ['', 'xyzzy', '__proto__', 'constructor']) assert.equal(parameterAdvice(name, LIST), '', name);
  });

  it('costs nothing to find for a long name', () => {
    assertPrompt('a long name', () => parameterAdvice('x'.repeat(1_000_000), LIST));
  });
});
