/** Identifies a database and checks that an epoch was made for it. */
import assert from 'node:assert/strict';
import { hasPassed, shifted } from '../../../mixins/epoch/epoch.ts';

describe('the epoch of a tenant', () => {
  const row = {
    epoch: 'e',
    place: '7501234567890123456/16384/16900/00000001',
    here: '7501234567890123456/16384/16900/00000001',
    txOffset: '0',
    serverSnapshot: '90:100:90,95',
    lastTx: '99',
  };

  it('stays valid without changes', () => {
    assert.equal(hasPassed(row), false);
    assert.equal(hasPassed(row, null, '80:100:80'), false);
    assert.equal(hasPassed({ ...row, txOffset: '5000', lastTx: '5099' }, '5090:5100:'), false);
  });

  it('ends on another server, database, table or timeline', () => {
    for (const here of [
      '7501234567890123457/16384/16900/00000001',
      '7501234567890123456/16385/16900/00000001',
      '7501234567890123456/16384/16901/00000001',
      '7501234567890123456/16384/16900/00000002',
    ])
      assert.equal(hasPassed({ ...row, here }), true, here);
  });

  it('ends when an entry is ahead of the server', () => {
    assert.equal(hasPassed({ ...row, lastTx: '100' }), true);
    assert.equal(hasPassed(row, '90:101:'), true);
    assert.equal(hasPassed({ ...row, txOffset: '5000', lastTx: '5100' }), true);
  });

  it('is not checked on a replica', () => {
    assert.equal(hasPassed({ ...row, here: null, lastTx: '900' }), false);
  });

  it('shifts snapshots beyond the range of JavaScript numbers', () => {
    assert.equal(shifted('90:100:90,95', 0n), '90:100:90,95');
    assert.equal(shifted('90:100:90,95', 1000n), '1090:1100:1090,1095');
    assert.equal(
      shifted('9007199254740993:9007199254740995:', 2n ** 60n),
      `${2n ** 60n + 9007199254740993n}:${2n ** 60n + 9007199254740995n}:`,
    );
  });
});
