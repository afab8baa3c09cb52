/**
 * A client that sends on before the `Retry-After` of a 429 is over gets the next ones later and later, so that it costs
 * next to nothing. What passes its limits is never delayed, and neither is who waits as asked, on any other connection.
 * Source: docs/reference/limits.md, "Clients that do not wait".
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { LIMITS } from '../../../lib/limits.ts';
import { type RefusalState, type SocketState, stateOf } from './unsent-responses.ts';

/** So many in a row are answered at once: a client may have several requests under way when it first hears of it. */
const FREE = 3;
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;
/**
 * Many people may share the address of callers without a sign-in: what others did is held against a new connection up to
 * here, a delay of 400 ms.
 */
const OF_OTHERS_MAX = 6;
/** From so many in a row on the answer closes its connection. */
const CLOSE_FROM = 20;
/** A limit of a day may ask to wait for hours; who comes back earlier than that is not always watched. */
const WATCHED_MS = 60_000;

/** A caller's recent refusals. */
export interface CallerRefusals extends RefusalState {
  /** Since when its requests are refused, without a pause as long as was asked for. */
  refusedSince: number;
  /** An address, which is not always one caller. */
  readonly shared: boolean;
}

/** The part of a refused request that delays need. */
export interface Refused {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** When it came. */
  readonly started: number;
}

interface RefusalDelayOptions {
  /** Requests come through proxies, which put those of many callers on one connection. */
  readonly proxied: boolean;
  /** Delayed answers of one caller, and in all. */
  readonly ofCaller: number;
  readonly all: number;
  /** Called when a connection was closed because too many answers wait. */
  readonly cut: () => void;
}

const DEFAULTS: RefusalDelayOptions = {
  proxied: false,
  ofCaller: LIMITS.delayed_refusals_of_caller_max,
  all: LIMITS.delayed_refusals_max,
  cut: () => {},
};

const NONE: RefusalState = { ignored: 0, retryAt: 0 };

export class RefusalDelays {
  readonly #options: RefusalDelayOptions;
  readonly #now: () => number;
  readonly #waiting = new Map<Refused, { caller: CallerRefusals; timer: NodeJS.Timeout; send: () => void }>();
  readonly #ofCaller = new Map<CallerRefusals, number>();
  /** Answers that were delayed so far. */
  total = 0;

  constructor(options: Partial<RefusalDelayOptions> = {}, now: () => number = () => performance.now()) {
    this.#options = { ...DEFAULTS, ...options };
    this.#now = now;
  }

  /** Answers that wait now. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Sends a 429: at once, or after the delay that its client has earned. */
  send(x: Refused, caller: CallerRefusals, retryAfterSeconds: number, send: () => void): void {
    const waitMs = Math.min(retryAfterSeconds * 1_000, WATCHED_MS);
    const ignored = this.#note(x, caller, this.#now() + waitMs);
    const delayMs = delayOf(ignored);
    if (delayMs === 0) {
      send();
      return;
    }
    const ofCaller = this.#ofCaller.get(caller) ?? 0;
    if (ofCaller >= this.#options.ofCaller || this.#waiting.size >= this.#options.all) {
      this.#options.cut();
      x.req.socket.destroy();
      return;
    }
    if (ignored >= CLOSE_FROM) x.res.shouldKeepAlive = false;
    this.total++;
    this.#ofCaller.set(caller, ofCaller + 1);
    const timer = setTimeout(() => {
      this.end(x);
      send();
    }, delayMs).unref();
    this.#waiting.set(x, { caller, timer, send });
  }

  /** Counts a refusal; returns how many in a row came too early. */
  #note({ req, started }: Refused, caller: CallerRefusals, retryAt: number): number {
    if (started >= caller.retryAt) {
      caller.refusedSince = started;
      caller.ignored = 0;
    }
    const socket = stateOf(req.socket);
    const before = this.#before(socket, caller);
    const ignored = started < before.retryAt ? before.ignored + 1 : 0;
    socket.refusal = { ignored, retryAt };
    caller.ignored = Math.max(caller.ignored, ignored);
    caller.retryAt = Math.max(caller.retryAt, retryAt);
    return ignored;
  }

  /**
   * Refusals count per connection, for all its callers; a new one that was opened to get around that
   * continues what the others did; of an address only up to a point. The connections of a proxy say nothing about whose
   * request comes next.
   */
  #before({ openedAt, refusal }: SocketState, caller: CallerRefusals): RefusalState {
    if (this.#options.proxied) return ofAll(caller);
    if (refusal) return refusal;
    return openedAt > caller.refusedSince ? ofAll(caller) : NONE;
  }

  /** The client has gone. */
  end(x: Refused): void {
    const waiting = this.#waiting.get(x);
    if (!waiting) return;
    this.#waiting.delete(x);
    clearTimeout(waiting.timer);
    const left = (this.#ofCaller.get(waiting.caller) ?? 1) - 1;
    if (left > 0) this.#ofCaller.set(waiting.caller, left);
    else this.#ofCaller.delete(waiting.caller);
  }

  /** Sends all that wait, as before a stop. */
  release(): void {
    for (const [x, { send }] of [...this.#waiting]) {
      this.end(x);
      send();
    }
  }
}

/** Refusals on all connections of a caller: the next one counts one more. */
const ofAll = ({ ignored, retryAt, shared }: CallerRefusals): RefusalState => ({
  ignored: shared ? Math.min(ignored, OF_OTHERS_MAX - 1) : ignored,
  retryAt,
});

function delayOf(ignored: number): number {
  return ignored <= FREE ? 0 : Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (ignored - FREE - 1));
}
