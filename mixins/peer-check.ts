/**
 * Notices within a moment that a process which was asked something has died. Heartbeats take seconds to say so; this
 * asks the process directly, but only while a call has been waiting for it unusually long. NATS answers at once for a
 * process whose connection ended (mixins/bus/nats-bus.ts). One that is connected and does not answer is taken off the
 * list here, which fails what waits for it; one that was merely slow comes back with its next heartbeat.
 *
 * A process that was busy itself, or got no processor, looks again before it removes another from the list: what the
 * others said meanwhile lies unread before it, answers and heartbeats alike.
 */
import type { Middleware, ServiceBroker } from 'moleculer';
import { busConnected } from './bus/connected.ts';
import { availableNodes, isAvailable, loseNode, lostNodes } from './bus/lost-nodes.ts';
import { middleware, trackedContexts } from './moleculer.ts';

const WATCH_MS = 50;
const UNUSUAL_MS = 100;
/** A process that does not answer for so long is lost. On a busy machine one is silent for a second when it first does something. */
const SILENT_MS = 1_500;
/** Interval at which it is asked meanwhile: its connection may end at any time. */
const PING_MS = 100;
/** One that has answered is asked again after so long. */
const TRUSTED_MS = 100;
/**
 * A timer of WATCH_MS that is so late says that this process was busy itself; it has caught up on the others some time
 * later.
 */
const BUSY_MS = 400;
const CATCHING_UP_MS = 2_000;
/** A process that is busy all the time looks for so long only: others do get lost. */
const LOOKS_MAX = 3;
/** But never when it has just been busy: nothing of what the others said meanwhile can have been read yet. */
const UNREAD_MS = 500;

interface Waiting {
  readonly nodeId: string;
  readonly since: number;
}

class PeerCheck {
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
    const { discoverer } = broker.registry;
    const check = discoverer.checkRemoteNodes.bind(discoverer);
    const look = (looks: number): void => {
      if (this.#isCatchingUp(looks)) setTimeout(look, CATCHING_UP_MS, looks + 1).unref();
      else {
        const available = availableNodes(broker);
        check();
        lostNodes(broker).heartbeat += available - availableNodes(broker);
      }
    };
    discoverer.checkRemoteNodes = () => look(1);
  }

  /** Remembers a call until it ends. */
  track(call: PromiseLike<unknown> & { ctx?: { nodeID?: string | null } }): void {
    const { ctx } = call;
    const nodeId = ctx?.nodeID;
    if (!nodeId || nodeId === this.#broker.nodeID) return;
    const entry = { nodeId, since: performance.now() };
    const end = (): void => {
      this.#waiting.delete(entry);
    };
    this.#waiting.add(entry);
    call.then(end, () => {
      end();
      this.#release(ctx);
    });
  }

  /**
   * Moleculer keeps the context of a remote call that ran into its time limit among the running ones for ever, and a
   * stop would wait for it in vain.
   */
  #release(ctx: object): void {
    const running: object[] = trackedContexts(this.#broker);
    const at = running.indexOf(ctx);
    if (at >= 0) running.splice(at, 1);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Whether this process has to look again, after so many looks, before it removes another one from the list. */
  #isCatchingUp(looks: number): boolean {
    this.#noteBusy();
    return performance.now() - this.#busyAt < (looks < LOOKS_MAX ? CATCHING_UP_MS : UNREAD_MS);
  }

  /** Timers that became due meanwhile may run in any order, so every one of them measures anew. */
  #noteBusy(): void {
    const now = performance.now();
    if (now - this.#looked > BUSY_MS) this.#busyAt = now;
  }

  #watch(): void {
    this.#noteBusy();
    this.#looked = performance.now();
    const now = this.#looked;
    for (const { nodeId, since } of this.#waiting) if (now - since > UNUSUAL_MS) this.#ask(nodeId, now);
  }

  #ask(nodeId: string, now: number): void {
    if (this.#asking.has(nodeId) || now - (this.#seen.get(nodeId) ?? Number.NEGATIVE_INFINITY) < TRUSTED_MS) return;
    this.#asking.add(nodeId);
    this.#answers(nodeId)
      .then((alive) => {
        if (alive) this.#seen.set(nodeId, performance.now());
        else loseNode(this.#broker, nodeId, 'silent');
      })
      .finally(() => this.#asking.delete(nodeId));
  }

  async #answers(nodeId: string): Promise<boolean> {
    for (let look = 1; busConnected(this.#broker) && isAvailable(this.#broker, nodeId); look++) {
      if (await this.#answersWithin(SILENT_MS, nodeId)) return true;
      if (!this.#isCatchingUp(look)) return false;
    }
    return false;
  }

  async #answersWithin(milliseconds: number, nodeId: string): Promise<boolean> {
    for (const began = performance.now(); performance.now() - began < milliseconds; ) {
      if ((await this.#broker.ping(nodeId, PING_MS)) !== null) return true;
      if (!isAvailable(this.#broker, nodeId)) return false;
    }
    return false;
  }
}

/** Middleware of a broker on a bus. */
export function peerCheck(): Middleware {
  let watcher: PeerCheck | undefined;
  return middleware({
    name: 'PeerCheck',
    started(broker: ServiceBroker) {
      if (broker.transit) watcher = new PeerCheck(broker);
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
  });
}
