/**
 * Admission to the pool: the connections of one tenant are capped, and a request without a free place waits in a
 * queue of its own. Queues are served in turn, so that a tenant with a thousand requests delays no other. A part of
 * the pool is kept for the platform's own work. Source: docs/decisions/connections-per-tenant.md.
 */
import { PlatformError } from '../../lib/errors/platform-error.ts';

interface ConnectionLimits {
  /** Connections of the pool. */
  readonly size: number;
  /** Connections that the records of one tenant may hold at a time. */
  readonly perTenant: number;
}

/** On whose account connections are held. Those of one key are counted together and wait in one queue. */
export interface Holder {
  readonly key: string;
  /** Connections that it may hold at a time. */
  readonly max: number;
  /** The platform's own work, which may use the part of the pool that is kept for it. */
  readonly platform: boolean;
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
  readonly since: number;
}

interface Queue extends Holder {
  held: number;
  readonly waiting: Waiter[];
}

/** Requests of one holder that may wait at a time. */
export const WAITING_MAX = 500;
/** How long one of them waits. */
const WAIT_MAX_MS = 5_000;
/** The same for the platform's own work: people who sign in in great numbers rather wait. */
const PLATFORM_WAIT_MAX_MS = 10_000;

/** The platform's own work, which belongs to no tenant. */
export const PLATFORM: Holder = { key: 'platform', max: Number.POSITIVE_INFINITY, platform: true };

/** Connections that are kept for the platform's own work. */
const reservedOf = (size: number): number => (size >= 4 ? Math.ceil(size / 5) : size > 1 ? 1 : 0);

export class ConnectionQueues {
  /** Connections of the pool at most. */
  readonly size: number;
  readonly #tenantsMax: number;
  readonly #perTenant: number;
  readonly #perShared: number;
  readonly #queues = new Map<string, Queue>();
  /** Queues with waiting requests, the next one to be served first. */
  readonly #turns = new Set<Queue>();
  #held = 0;
  #heldByTenants = 0;
  #waiting = 0;
  /** Totals since the start, for the metrics. */
  readonly totals = { waits: 0, waitedMs: 0, refused: 0 };

  constructor({ size, perTenant }: ConnectionLimits) {
    this.size = size;
    this.#tenantsMax = size - reservedOf(size);
    this.#perTenant = Math.min(perTenant, this.#tenantsMax);
    this.#perShared = Math.min(size, Math.max(2, Math.floor(this.#perTenant / 2)));
  }

  /** Requests that wait now. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Connections that are held now. */
  get held(): number {
    return this.#held;
  }

  /** Work on the records of a tenant. */
  tenant(key: string): Holder {
    return { key, max: this.#perTenant, platform: false };
  }

  /** Work of a service for a tenant, which goes on while the tenant's records have used up their share. */
  shared(key: string): Holder {
    return { key, max: this.#perShared, platform: true };
  }

  /**
   * Takes a connection's place for `holder`: undefined when there is room, else a promise that waits for it, at
   * most `waitMs`. Every place that was taken is given back by `leave`.
   */
  enter(holder: Holder, waitMs = Number.POSITIVE_INFINITY): Promise<void> | undefined {
    const queue = this.#queues.get(holder.key) ?? this.#open(holder);
    if (!this.#hasRoom(queue)) return this.#wait(queue, waitMs);
    this.#take(queue);
    return undefined;
  }

  leave(holder: Holder): void {
    const queue = this.#queues.get(holder.key);
    if (!queue || queue.held === 0) throw new Error(`${holder.key} holds no connection.`);
    queue.held--;
    this.#held--;
    if (!queue.platform) this.#heldByTenants--;
    this.#forget(queue);
    if (this.#turns.size > 0) this.#serve();
  }

  #open(holder: Holder): Queue {
    const queue: Queue = { ...holder, held: 0, waiting: [] };
    this.#queues.set(holder.key, queue);
    return queue;
  }

  #forget(queue: Queue): void {
    if (queue.held === 0 && queue.waiting.length === 0) this.#queues.delete(queue.key);
  }

  #hasRoom(queue: Queue): boolean {
    return (
      queue.held < queue.max && this.#held < this.size && (queue.platform || this.#heldByTenants < this.#tenantsMax)
    );
  }

  #take(queue: Queue): void {
    queue.held++;
    this.#held++;
    if (!queue.platform) this.#heldByTenants++;
  }

  #wait(queue: Queue, waitMs: number): Promise<void> {
    if (queue.waiting.length >= WAITING_MAX || waitMs <= 0) {
      this.#forget(queue);
      return Promise.reject(this.#refusal(queue));
    }
    this.totals.waits++;
    this.#waiting++;
    this.#turns.add(queue);
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        resolve,
        reject,
        since: performance.now(),
        timer: setTimeout(
          () => this.#giveUp(queue, waiter),
          Math.min(waitMs, queue.platform ? PLATFORM_WAIT_MAX_MS : WAIT_MAX_MS),
        ),
      };
      queue.waiting.push(waiter);
    });
  }

  /** Gives free places to those who wait, one queue after the other. */
  #serve(): void {
    for (const queue of this.#turns) {
      if (this.#held >= this.size) return;
      if (!this.#hasRoom(queue)) continue;
      const waiter = queue.waiting.shift();
      this.#turns.delete(queue);
      if (!waiter) continue;
      // Behind the others, which have their turn before this queue is looked at again.
      if (queue.waiting.length > 0) this.#turns.add(queue);
      this.#take(queue);
      this.#ended(waiter);
      waiter.resolve();
    }
  }

  #giveUp(queue: Queue, waiter: Waiter): void {
    queue.waiting.splice(queue.waiting.indexOf(waiter), 1);
    if (queue.waiting.length === 0) this.#turns.delete(queue);
    this.#ended(waiter);
    waiter.reject(this.#refusal(queue));
    this.#forget(queue);
  }

  #ended(waiter: Waiter): void {
    clearTimeout(waiter.timer);
    this.#waiting--;
    this.totals.waitedMs += performance.now() - waiter.since;
  }

  #refusal(queue: Queue): PlatformError {
    this.totals.refused++;
    return queue.held >= queue.max
      ? new PlatformError(
          'CONCURRENCY_LIMIT_EXCEEDED',
          `The tenant's requests already hold all ${queue.max} database connections that it may use at a time.`,
          { details: { max: queue.max }, retryAfterSeconds: 1 },
        )
      : new PlatformError('SERVICE_UNAVAILABLE', 'All database connections are in use. Try again.', {
          retryAfterSeconds: 1,
        });
  }
}
