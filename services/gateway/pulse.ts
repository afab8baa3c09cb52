/**
 * Notices within a second that a remote node which holds a request has died. Heartbeats take seconds to say so; this
 * asks the node directly, but only while a request has been waiting for it unusually long. A node that was merely slow
 * comes back with its next heartbeat.
 */
import type { ServiceBroker } from 'moleculer';
import { busConnected } from '../../mixins/health.ts';

const PING_TIMEOUT_MS = 600;
const TRUSTED_MS = 500;

interface BrokerInternals {
  registry: {
    getNodeList(options: { onlyAvailable: boolean }): { id: string }[];
    nodes: { disconnected(nodeId: string, unexpected: boolean): void };
  };
}

export class Pulse {
  readonly #broker: ServiceBroker;
  readonly #seen = new Map<string, number>();
  readonly #asking = new Set<string>();
  #linked = true;

  constructor(broker: ServiceBroker) {
    this.#broker = broker;
  }

  /**
   * When the bus goes, every other node goes with it: what waits for them fails now, and after the reconnect nothing is
   * sent to a node that has not shown itself again, because it may not be listening yet.
   */
  watchLink(): void {
    const linked = busConnected(this.#broker);
    if (this.#linked && !linked) {
      const { registry } = this.#broker as unknown as BrokerInternals;
      for (const { id } of registry.getNodeList({ onlyAvailable: true }))
        if (id !== this.#broker.nodeID) registry.nodes.disconnected(id, true);
    }
    this.#linked = linked;
  }

  /** Asks the node unless it has just answered; a silent one is taken off the list, which fails what waits for it. */
  check(nodeId: string, now: number): void {
    if (this.#asking.has(nodeId) || now - (this.#seen.get(nodeId) ?? 0) < TRUSTED_MS) return;
    this.#asking.add(nodeId);
    const internals = this.#broker as unknown as BrokerInternals;
    const answered = busConnected(this.#broker)
      ? (this.#broker.ping(nodeId, PING_TIMEOUT_MS) as Promise<unknown>).then((pong) => pong !== null)
      : Promise.resolve(false);
    answered
      .then((alive) => {
        if (alive) this.#seen.set(nodeId, Date.now());
        else internals.registry.nodes.disconnected(nodeId, true);
      })
      .finally(() => this.#asking.delete(nodeId));
  }
}
