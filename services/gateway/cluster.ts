/** The services on the bus as this gateway sees them: which nodes run what, and the owners of the rate counters. */
import type { ServiceBroker } from 'moleculer';
import { call } from '../../contracts/call.ts';
import { type Lease, type LeaseRequest, ownerOf } from '../../contracts/ratelimit.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';

const LEASE_TIMEOUT_MS = 800;

export class ClusterView {
  readonly #broker: ServiceBroker;
  readonly #everSeen = new Set<string>();
  #nodesByService: Map<string, string[]> | null = null;

  constructor(broker: ServiceBroker) {
    this.#broker = broker;
  }

  /** Event: a service or a node came or went. */
  changed(): void {
    this.#nodesByService = null;
  }

  /** Ids of the available nodes that run the service. */
  nodesOf(service: string): readonly string[] {
    return this.#services().get(service) ?? [];
  }

  /** True once the service was available, also when it is not at the moment. */
  wasSeen(service: string): boolean {
    this.#services();
    return this.#everSeen.has(service);
  }

  /** Leases from the owners of the counters, one call per owner; in the order of the requests. */
  async takeLeases(requests: LeaseRequest[]): Promise<(Lease | undefined)[]> {
    const nodes = this.nodesOf('ratelimit');
    if (nodes.length === 0) throw new PlatformError('SERVICE_UNAVAILABLE', 'No ratelimit service is available.');
    const gateway = this.#broker.nodeID;
    const leases: (Lease | undefined)[] = [];
    // By place and not by key: one counter may be asked for units and for what is held in the same call.
    const places = Map.groupBy(requests.entries(), ([, { key }]) =>
      nodes.length === 1 ? nodes[0] : ownerOf(key, nodes),
    );
    await Promise.all(
      [...places].map(async ([nodeID, group]) => {
        const answers = await call(
          this.#broker,
          'ratelimit.leases.take',
          { gateway, requests: group.map(([, request]) => request) },
          { ...(nodeID === undefined ? {} : { nodeID }), timeout: LEASE_TIMEOUT_MS },
        );
        for (const [place, [i]] of group.entries()) leases[i] = answers[place];
      }),
    );
    return requests.map((_, i) => leases[i]);
  }

  #services(): Map<string, string[]> {
    if (this.#nodesByService) return this.#nodesByService;
    this.#nodesByService = new Map();
    for (const { name, nodeID } of this.#broker.registry.getServiceList({ onlyAvailable: true })) {
      if (name === undefined || nodeID === undefined) continue;
      this.#everSeen.add(name);
      const nodes = this.#nodesByService.get(name);
      if (nodes) nodes.push(nodeID);
      else this.#nodesByService.set(name, [nodeID]);
    }
    return this.#nodesByService;
  }
}
