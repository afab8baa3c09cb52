/**
 * A fair queue for a few places: every tenant has one place at a time, waiting tenants take turns, and
 * queues are short. One tenant delays another by one piece of work at most.
 */
import { PlatformError } from '../lib/errors/platform-error.ts';

export interface TurnLimits {
  /** Pieces of work at a time. */
  readonly places: number;
  /** Pieces of work of one tenant that wait. */
  readonly waitingPerTenant: number;
  readonly waiting: number;
  /** How long a piece of work waits, which must leave its request the time to be answered. */
  readonly waitMs: number;
}

interface Waiter {
  readonly begin: () => void;
  readonly timer: NodeJS.Timeout | undefined;
}

interface Row {
  working: boolean;
  readonly waiting: Waiter[];
}

export class Turns {
  readonly #limits: TurnLimits;
  /** In the order of their next turn. */
  readonly #rows = new Map<string, Row>();
  #working = 0;
  #waiting = 0;

  constructor(limits: TurnLimits) {
    this.#limits = limits;
  }

  /**
   * Does the work when the tenant has its turn. `first`: of those of its tenant it is the next, and is never refused,
   * because it holds locks or ends what has begun; else it throws 429 CONCURRENCY_LIMIT_EXCEEDED or 503
   * SERVICE_UNAVAILABLE, at once where too many wait, or when its time to wait has passed.
   */
  async take<T>(tenantId: string, work: () => Promise<T>, { first = false } = {}): Promise<T> {
    await this.#turn(tenantId, first);
    try {
      return await work();
    } finally {
      this.#leave(tenantId);
    }
  }

  #turn(tenantId: string, first: boolean): Promise<void> | undefined {
    const row = this.#rows.get(tenantId) ?? { working: false, waiting: [] };
    const begins = !row.working && this.#working < this.#limits.places;
    if (!begins && !first) this.#refuseExcess(row);
    // Only now: nothing is kept of a tenant that was refused.
    this.#rows.set(tenantId, row);
    if (begins) {
      this.#begin(row);
      return undefined;
    }
    this.#waiting++;
    const { waiting } = row;
    return new Promise((begin, reject) => {
      if (first) return void waiting.unshift({ begin, timer: undefined });
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(waiter), 1);
        this.#waiting--;
        if (!row.working && waiting.length === 0) this.#rows.delete(tenantId);
        reject(this.#late(row));
      }, this.#limits.waitMs);
      const waiter: Waiter = { begin, timer };
      waiting.push(waiter);
    });
  }

  /** `working`: the tenant's own work blocks it, not that of others. */
  #late({ working }: Row): PlatformError {
    const options = { retryAfterSeconds: 5 };
    const seconds = this.#limits.waitMs / 1_000;
    return working
      ? new PlatformError(
          'CONCURRENCY_LIMIT_EXCEEDED',
          `Another such request of the tenant is in progress and did not finish within ${seconds} s.`,
          { ...options, details: { max: 1 } },
        )
      : new PlatformError(
          'SERVICE_UNAVAILABLE',
          `Other work of this kind did not finish within ${seconds} s.`,
          options,
        );
  }

  /** Tenants that work or wait. */
  get size(): number {
    return this.#rows.size;
  }

  #refuseExcess({ waiting }: Row): void {
    const { waitingPerTenant: max } = this.#limits;
    const options = { retryAfterSeconds: 1 };
    if (waiting.length >= max)
      throw new PlatformError(
        'CONCURRENCY_LIMIT_EXCEEDED',
        `The tenant already has ${max} waiting requests, the maximum.`,
        {
          ...options,
          details: { max },
        },
      );
    if (this.#waiting >= this.#limits.waiting)
      throw new PlatformError('SERVICE_UNAVAILABLE', 'The queue for this kind of work is full.', options);
  }

  #begin(row: Row): void {
    row.working = true;
    this.#working++;
  }

  #leave(tenantId: string): void {
    const row = this.#rows.get(tenantId);
    if (!row) return;
    row.working = false;
    this.#working--;
    // To the end of the order.
    this.#rows.delete(tenantId);
    if (row.waiting.length > 0) this.#rows.set(tenantId, row);
    this.#next();
  }

  #next(): void {
    for (const row of this.#rows.values()) {
      if (this.#working >= this.#limits.places) return;
      const next = row.working ? undefined : row.waiting.shift();
      if (!next) continue;
      clearTimeout(next.timer);
      this.#waiting--;
      this.#begin(row);
      next.begin();
    }
  }
}
