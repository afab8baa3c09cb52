/**
 * Notices within a second that a process which was asked something has died. Heartbeats take seconds to say so; this
 * asks the process directly, but only while a call has been waiting for it unusually long. One that does not answer is
 * taken off the list, which fails what waits for it; one that was merely slow comes back with its next heartbeat.
 *
 * A process that was busy itself, or got no processor, looks again before it takes anybody off the list: what the
 * others said meanwhile lies unread before it, answers and heartbeats alike.
 */
import type { Middleware, ServiceBroker } from 'moleculer';
import { busConnected } from './health.ts';

const WATCH_MS = 100;
const UNUSUAL_MS = 300;
const PING_TIMEOUT_MS = 600;
const TRUSTED_MS = 500;
/**
 * A timer of WATCH_MS that is so late says that this process was busy itself; it has caught up on the others some time
 * later.
 */
const BUSY_MS = 400;
const CATCHING_UP_MS = 2_000;
/** How often a process that is busy all the time looks: others do get lost. */
const LOOKS_MAX = 3;

interface Registry {
  nodes: { disconnected(nodeId: string, unexpected: boolean): void };
  discoverer: { checkRemoteNodes(): void };
}

interface Waiting {
  readonly nodeId: string;
  readonly since: number;
}

class Pulse {
  readonly #broker: ServiceBroker;
  readonly #waiting = new Set<Waiting>();
  readonly #seen = new Map<string, number>();
  readonly #asking = new Set<string>();
  readonly #timer: NodeJS.Timeout;
  #looked = performance.now();
  #busyAt = Number.NEGATIVE_INFINITY;

  constructor(broker: ServiceBroker) {
    this.#broker = broker;
    this.#timer = setInterval(() => this.#watch(), WATCH_MS).unref();
    const { discoverer } = this.#registry;
    const check = discoverer.checkRemoteNodes.bind(discoverer);
    const look = (looks: number): void => {
      if (looks < LOOKS_MAX && this.#wasBusy()) setTimeout(look, CATCHING_UP_MS, looks + 1).unref();
      else check();
    };
    discoverer.checkRemoteNodes = () => look(1);
  }

  /** Remembers a call until it ends. */
  track(call: PromiseLike<unknown> & { ctx?: { nodeID?: string | null } }): void {
    const nodeId = call.ctx?.nodeID;
    if (!nodeId || nodeId === this.#broker.nodeID) return;
    const entry = { nodeId, since: Date.now() };
    const end = (): void => {
      this.#waiting.delete(entry);
    };
    this.#waiting.add(entry);
    call.then(end, () => {
      end();
      this.#release(call.ctx!);
    });
  }

  /**
   * Moleculer keeps the context of a remote call that ran into its time limit among the running ones for ever, and a
   * stop would wait for it in vain.
   */
  #release(ctx: object): void {
    const { _trackedContexts: running } = this.#broker as unknown as { _trackedContexts: object[] };
    const at = running.indexOf(ctx);
    if (at >= 0) running.splice(at, 1);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Timers that became due meanwhile may run in any order, so every caller measures anew. */
  #wasBusy(): boolean {
    const now = performance.now();
    if (now - this.#looked > BUSY_MS) this.#busyAt = now;
    return now - this.#busyAt < CATCHING_UP_MS;
  }

  #watch(): void {
    this.#wasBusy();
    this.#looked = performance.now();
    const now = Date.now();
    for (const { nodeId, since } of this.#waiting) if (now - since > UNUSUAL_MS) this.#ask(nodeId, now);
  }

  #ask(nodeId: string, now: number): void {
    if (this.#asking.has(nodeId) || now - (this.#seen.get(nodeId) ?? 0) < TRUSTED_MS) return;
    this.#asking.add(nodeId);
    this.#answers(nodeId)
      .then((alive) => {
        if (alive) this.#seen.set(nodeId, Date.now());
        else this.#registry.nodes.disconnected(nodeId, true);
      })
      .finally(() => this.#asking.delete(nodeId));
  }

  async #answers(nodeId: string): Promise<boolean> {
    for (let ping = 1; busConnected(this.#broker); ping++) {
      if ((await this.#broker.ping(nodeId, PING_TIMEOUT_MS)) !== null) return true;
      if (ping === LOOKS_MAX || !this.#wasBusy()) return false;
    }
    return false;
  }

  get #registry(): Registry {
    return this.#broker.registry as unknown as Registry;
  }
}

/** Middleware of a broker on a bus. */
export function pulse(): Middleware {
  let watcher: Pulse | undefined;
  return {
    name: 'Pulse',
    started(broker: ServiceBroker) {
      if (broker.transit) watcher = new Pulse(broker);
    },
    stopped() {
      watcher?.stop();
    },
    call(next: (...parameters: unknown[]) => PromiseLike<unknown>) {
      return function call(this: unknown, ...parameters: unknown[]) {
        const answered = next.apply(this, parameters);
        watcher?.track(answered);
        return answered;
      };
    },
  } as unknown as Middleware;
}
