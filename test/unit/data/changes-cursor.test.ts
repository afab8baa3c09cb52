/** The ends of windows of changes, and what a cursor of the change feed carries. */
import assert from 'node:assert/strict';
import type { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { Seal } from '../../../lib/values/sealed.ts';
import {
  type FeedPosition,
  openPosition,
  sealPosition,
  snapshotUpTo,
} from '../../../services/data/trail/changes-cursor.ts';

describe('the cursor of changes', () => {
  it('ends a window after a transaction, excluding running ones', () => {
    assert.equal(snapshotUpTo('110', '100:120:', '90:90:'), '111:111:');
    assert.equal(snapshotUpTo('110', '100:120:100,105,111,118', '90:90:'), '100:111:100,105');
    assert.equal(snapshotUpTo('110', '112:120:112,118', '90:90:'), '111:111:');
    assert.equal(snapshotUpTo('119', '100:120:100', '90:90:'), '100:120:100');
    assert.equal(snapshotUpTo('105', '120:130:120', '104:111:104'), '111:111:', 'what was reported stays reported');
    const big = 2n ** 60n;
    assert.equal(snapshotUpTo(String(big + 3n), `${big}:${big + 9n}:${big}`, '90:90:'), `${big}:${big + 4n}:${big}`);
  });

  it('holds the position of a caller, in constant size', () => {
    const seal: Seal = { keys: [Buffer.alloc(32, 1)], now: 5, tenantId: 't', userId: 'u', clientId: 'c' };
    const position: FeedPosition = {
      object: 'Deal__c',
      time: 1_795_000_000_000,
      epoch: '7501234567890123456/1',
      access: 'x'.repeat(22),
      lastUserId: '0199f000-0000-7000-8000-000000000001',
      snapshot: '1000000:1000000:',
      initial: true,
      window: { end: '1001000:1001000:', endTime: 1_795_000_000_001, isLast: false, afterId: '0'.repeat(36) },
    };
    const cursor = sealPosition(position, seal);
    assert.ok(cursor.length < 600, `${cursor.length} characters`);
    assert.deepEqual(openPosition(cursor, 'Deal__c', seal), position);
    const code = (given: string, object: string, by = seal): string => {
      try {
        openPosition(given, object, by);
        return '';
      } catch (error) {
        return (error as PlatformError).code;
      }
    };
    assert.equal(code(cursor, 'Other__c'), 'CURSOR_QUERY_MISMATCH');
    assert.equal(code(cursor, 'Deal__c', { ...seal, userId: 'v' }), 'CURSOR_INVALID');
  });
});
