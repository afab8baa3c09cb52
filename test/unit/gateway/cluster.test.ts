import assert from 'node:assert/strict';
import type { ServiceBroker } from 'moleculer';
import type { LeaseRequest } from '../../../contracts/ratelimit.ts';
import { ClusterView } from '../../../services/gateway/cluster.ts';
import { Buckets } from '../../../services/ratelimit/buckets.ts';

describe('The owners of the rate counters', () => {
  for (const nodes of [['one'], ['one', 'two', 'three']])
    it(`answer each request in its place, also several about one counter: ${nodes.length} owner(s)`, async () => {
      const owners = new Map(nodes.map((nodeID) => [nodeID, new Buckets()]));
      const broker = {
        nodeID: 'gateway',
        registry: { getServiceList: () => nodes.map((nodeID) => ({ name: 'ratelimit', nodeID })) },
        call: async (_: string, { requests }: { requests: LeaseRequest[] }, { nodeID }: { nodeID: string }) =>
          requests.map((request) => owners.get(nodeID)!.take('gateway', request, 0)),
      } as unknown as ServiceBroker;
      const of = (key: string, units: number, held = 0): LeaseRequest => ({
        key,
        limit: 100,
        windowSeconds: 60,
        units,
        held,
      });
      const requests = [of('a', 5), of('b', 7), of('a', 0, 5), of('c', 9), of('b', 0, 7)];
      const leases = await new ClusterView(broker).takeLeases(requests);
      assert.deepEqual(
        leases.map((lease) => [lease?.key, lease?.granted, lease?.remaining]),
        [
          ['a', 5, 95],
          ['b', 7, 93],
          ['a', 0, 95],
          ['c', 9, 91],
          ['b', 0, 93],
        ],
      );
    });
});
