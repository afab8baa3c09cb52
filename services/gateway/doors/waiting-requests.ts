/**
 * Requests that wait for an answer which is not empty. One holds a connection of the gateway and a place among the event
 * streams, and no call: the service is asked again when a topic is woken. When its time is over, the last answer is sent.
 */
import { LRUCache } from 'lru-cache';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import type { WaitOrder } from '../../../lib/streams.ts';
import { entryBound } from '../../../lib/values/entry-bound.ts';
import type { Exchange } from '../edge/exchange.ts';
import type { Streams } from '../pipeline/streams.ts';

/** Of many wake-ups in a row each request is answered once in this time. */
const READ_EVERY_MS = 1_000;
const TOPICS_MAX = 10_000;

interface Options {
  readonly streams: Streams;
  /** Throws when the caller may not read any more. */
  readonly recheck: (x: Exchange) => Promise<void>;
  /** The page behind the cursor, for which the caller pays. */
  readonly read: (x: Exchange, cursor: string) => Promise<OperationReply>;
}

interface Waiter {
  readonly topics: readonly string[];
  readonly wake: () => void;
  readonly end: () => void;
}

export class WaitingRequests {
  readonly #options: Options;
  readonly #waiters = new Set<Waiter>();
  /** When topics were woken last: a wake-up may come before the request that it is for begins to wait. */
  readonly #wokenAt = new LRUCache<string, number>(entryBound(TOPICS_MAX));
  #ended = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** The answer, at the latest when the time of `order` is over. `readAt`: when `reply` was asked for. */
  async answer(x: Exchange, reply: OperationReply, order: WaitOrder, readAt: number): Promise<OperationReply> {
    const leave = this.#options.streams.enter(x);
    x.leaveFlight();
    const until = performance.now() + order.seconds * 1_000;
    let found = reply;
    try {
      for (let from = readAt; found.wait && (await this.#woken(x, found.wait, from, until)); ) {
        from = performance.now();
        await this.#options.recheck(x);
        found = await this.#options.read(x, found.wait.cursor);
      }
      return found;
    } catch (error) {
      // Its budget is used up: it has waited long enough.
      if (error instanceof PlatformError && error.status === 429) return found;
      throw error;
    } finally {
      leave();
    }
  }

  wake(topics: readonly string[]): void {
    const now = performance.now();
    for (const topic of topics) this.#wokenAt.set(topic, now);
    for (const waiter of this.#waiters) if (waiter.topics.some((topic) => topics.includes(topic))) waiter.wake();
  }

  /** All are answered with what they have. */
  endAll(): void {
    this.#ended = true;
    for (const { end } of this.#waiters) end();
  }

  /** True when a topic was woken since `from`; false when the time is over, the client has left, or the process ends. */
  #woken({ res, left }: Exchange, { topics }: WaitOrder, from: number, until: number): Promise<boolean> {
    if (this.#ended || left || res.destroyed) return Promise.resolve(false);
    return new Promise((resolve) => {
      const answered = (woken: boolean): void => {
        clearTimeout(timer);
        this.#waiters.delete(waiter);
        res.off('close', end);
        resolve(woken);
      };
      const at = (time: number, woken: boolean): NodeJS.Timeout =>
        setTimeout(() => answered(woken), Math.max(0, time - performance.now()));
      const end = (): void => answered(false);
      const wake = (): void => {
        const time = from + READ_EVERY_MS;
        if (time >= until) return;
        clearTimeout(timer);
        timer = at(time, true);
      };
      const waiter: Waiter = { topics, wake, end };
      let timer = at(until, false);
      this.#waiters.add(waiter);
      res.once('close', end);
      if (topics.some((topic) => (this.#wokenAt.get(topic) ?? Number.NEGATIVE_INFINITY) >= from)) wake();
    });
  }
}
