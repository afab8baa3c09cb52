/**
 * Notices within a second that a remote node which holds a request has died. Heartbeats take seconds to say so; this
 * asks the node directly, but only while a request has been waiting for it unusually long. A node that was merely slow
 * comes back with its next heartbeat.
 */
import type { ServiceBroker } from 'moleculer';

const PING_TIMEOUT_MS = 600;
const TRUSTED_MS = 500;

interface BrokerInternals {
  transit?: { connected: boolean } | null;
  registry: { nodes: { disconnected(nodeId: string, unexpected: boolean): void } };
}

export class Pulse {
  readonly #broker: ServiceBroker;
  readonly #seen = new Map<string, number>();
  readonly #asking = new Set<string>();

  constructor(broker: ServiceBroker) {
    this.#broker = broker;
  }

  /** Asks the node unless it has just answered; a silent one is taken off the list, which fails what waits for it. */
  check(nodeId: string, now: number): void {
    if (this.#asking.has(nodeId) || now - (this.#seen.get(nodeId) ?? 0) < TRUSTED_MS) return;
    this.#asking.add(nodeId);
    const internals = this.#broker as unknown as BrokerInternals;
    const answered = internals.transit?.connected
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
