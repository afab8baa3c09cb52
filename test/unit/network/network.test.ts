import assert from 'node:assert/strict';
import { homeNetworkOf, networkOf } from '../../../lib/values/network.ts';

describe('the network of an address', () => {
  for (const [address, network, home] of [
    ['192.0.2.7', '192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1', '2001:db8:1:2'],
    ['2001:db8:1:2::6', '2001:db8:1', '2001:db8:1:2'],
    ['2001:0DB8:0001:0002::', '2001:db8:1', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0', '2001:db8:0:0'],
    ['2001:db8::a:b', '2001:db8:0', '2001:db8:0:0'],
    ['2001:db8:0:0:c:d:e:f', '2001:db8:0', '2001:db8:0:0'],
    ['::1', '0:0:0', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0', 'fe80:0:0:0'],
    ['', '', ''],
  ] as const)
    it(`${address || 'nothing'} → ${network || 'nothing'}`, () =>
      assert.deepEqual([networkOf(address), homeNetworkOf(address)], [network, home]));
});
