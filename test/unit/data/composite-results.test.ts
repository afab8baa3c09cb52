import assert from 'node:assert/strict';
import { LIMITS } from '../../../lib/limits.ts';
import { Results } from '../../../services/data/composite/results.ts';

interface Told {
  readonly referenceId: string;
  readonly status: number;
  readonly body: unknown;
}

const TOO_LARGE = { code: 'REQUEST_TOO_LARGE' };

describe('results of the parts of a composite request', () => {
  it('refuse a reply for which there is no room, and tell what is stored for good', () => {
    const results = new Results();
    const long = { body: Buffer.from(JSON.stringify('x'.repeat(LIMITS.composite_body_max_bytes))) };
    assert.throws(() => results.add('read', long), TOO_LARGE);
    results.add('small', { body: { a: 1 } });
    assert.throws(() => results.requireRoom(), TOO_LARGE);
    assert.throws(() => results.add('again', long), TOO_LARGE);
    results.add('created', { ...long, status: 201 }, true);
    results.add('updated', { body: { b: 2 } }, true);
    const told = JSON.parse(results.answer(false, true).toString()).results;
    assert.deepEqual(
      told.map(({ referenceId, status, body }: Told) => [referenceId, status, body]),
      [
        ['small', 200, { a: 1 }],
        ['created', 201, null],
        ['updated', 200, { b: 2 }],
      ],
    );
  });
});
