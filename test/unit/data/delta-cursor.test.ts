/** The ends of stretches of changes, and what a cursor carries. */
import assert from 'node:assert/strict';
import type { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { Seal } from '../../../lib/values/sealed.ts';
import { type Delta, endAt, openDelta, sealDelta } from '../../../services/data/trail/delta-cursor.ts';

describe('the cursor of changes', () => {
  it('ends a stretch behind a transaction, without those that are still running', () => {
    assert.equal(endAt('100:120:', '110', '90:90:'), '111:111:');
    assert.equal(endAt('100:120:100,105,111,118', '110', '90:90:'), '100:111:100,105');
    assert.equal(endAt('112:120:112,118', '110', '90:90:'), '111:111:');
    assert.equal(endAt('100:120:100', '119', '90:90:'), '100:120:100');
    assert.equal(endAt('120:130:120', '105', '104:111:104'), '111:111:', 'nothing that was told is untold');
    const big = 2n ** 60n;
    assert.equal(endAt(`${big}:${big + 9n}:${big}`, String(big + 3n), '90:90:'), `${big}:${big + 4n}:${big}`);
  });

  it('carries where a caller stands, and stays as small however much there is to tell', () => {
    const seal: Seal = { key: Buffer.alloc(32, 1), now: 5, tenantId: 't', userId: 'u', clientId: 'c' };
    const delta: Delta = {
      object: 'Deal__c',
      since: 1_795_000_000_000,
      server: '7501234567890123456/1',
      sight: 'x'.repeat(22),
      from: '1000000:1000000:',
      first: true,
      stretch: { upTo: '1001000:1001000:', reached: 1_795_000_000_001, last: false, after: '0'.repeat(36) },
    };
    const cursor = sealDelta(delta, seal);
    assert.ok(cursor.length < 600, `${cursor.length} characters`);
    assert.deepEqual(openDelta(cursor, 'Deal__c', seal), delta);
    const code = (given: string, object: string, by = seal): string => {
      try {
        openDelta(given, object, by);
        return '';
      } catch (error) {
        return (error as PlatformError).code;
      }
    };
    assert.equal(code(cursor, 'Other__c'), 'CURSOR_QUERY_MISMATCH');
    assert.equal(code(cursor, 'Deal__c', { ...seal, userId: 'v' }), 'CURSOR_INVALID');
  });
});
