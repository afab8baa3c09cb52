/** The hostile requests of the suites are as intended: parsed by the platform, and distinct. */
import assert from 'node:assert/strict';
import { LIMITS } from '../../../lib/limits.ts';
import { HOSTILE_TEXTS, hostileWith } from '../../support/hostile.ts';

describe('The hostile requests', () => {
  const requests = [...HOSTILE_TEXTS.map((make) => make()), ...hostileWith.map((make) => make('%41é"[', '\u{1f600}'))];

  it('have unique names', () => {
    assert.equal(new Set(requests.map(({ name }) => name)).size, requests.length);
  });

  it('stay below the size limits', () => {
    for (const { name, path, body } of requests) {
      assert.ok(`/api/v1${path}`.length <= LIMITS.uri_max_bytes, name);
      assert.ok((body?.length ?? 0) <= LIMITS.body_max_bytes, `${name}: ${body?.length}`);
    }
  });
});
