/** The bound on connections: who opens many gives way to who opens few. */
import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { Connections } from '../../../services/gateway/edge/connections.ts';

describe('the connections of a gateway', () => {
  const open = (connections: Connections, address: string): Socket => {
    const socket = new Socket();
    connections.add(socket, address);
    return socket;
  };

  it('are limited per network', () => {
    const connections = new Connections({ ofNetwork: 2, all: 100 });
    const [, , third] = ['192.0.2.1', '192.0.2.1', '192.0.2.1'].map((address) => open(connections, address));
    assert.ok(third?.destroyed);
    const sites = ['2001:db8:1:1::1', '2001:db8:1:2::1', '2001:db8:1:3::1', '2001:db8:2::1'];
    assert.deepEqual(
      sites.map((address) => open(connections, address).destroyed),
      [false, false, true, false],
    );
  });

  it('of the network with most are closed, oldest first, when all are in use', () => {
    const connections = new Connections({ ofNetwork: 4, all: 6 });
    const greedy = Array.from({ length: 4 }, () => open(connections, '192.0.2.1'));
    const modest = [open(connections, '192.0.2.2'), open(connections, '192.0.2.2')];
    const newcomer = open(connections, '192.0.2.3');
    assert.deepEqual(
      [greedy.map(({ destroyed }) => destroyed), modest.some(({ destroyed }) => destroyed), newcomer.destroyed],
      [[true, false, false, false], false, false],
    );
    assert.equal(connections.open, 6);
  });

  it('of the network with most do not displace those of others', () => {
    const connections = new Connections({ ofNetwork: 10, all: 3 });
    open(connections, '192.0.2.2');
    for (let i = 0; i < 2; i++) open(connections, '192.0.2.1');
    assert.ok(open(connections, '192.0.2.1').destroyed);
  });

  it('free their place when they end', async () => {
    const connections = new Connections({ ofNetwork: 1, all: 1 });
    const first = open(connections, '192.0.2.1');
    first.destroy();
    await new Promise((resolve) => first.once('close', resolve));
    assert.equal(connections.open, 0);
    assert.equal(open(connections, '192.0.2.1').destroyed, false);
  });
});
