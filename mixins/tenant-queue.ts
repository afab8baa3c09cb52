/** A fair queue for expensive work of tenants: each tenant has one place at a time, and the waiting lines are short. */
import { PlatformError } from '../lib/errors/platform-error.ts';
import { FairQueue } from './fair-queue.ts';

export interface TenantQueueLimits {
  /** Pieces of work at a time. */
  readonly places: number;
  /** Pieces of work of one tenant that wait. */
  readonly waitingPerTenant: number;
  readonly waiting: number;
  /** How long a piece of work waits, which must leave its request the time to be answered. */
  readonly waitMs: number;
}

export class TenantQueue {
  readonly #queue: FairQueue;
  readonly #waitMs: number;

  constructor({ places, waitingPerTenant: max, waiting, waitMs }: TenantQueueLimits) {
    this.#waitMs = waitMs;
    const seconds = waitMs / 1_000;
    const ofTenant = (message: string, retryAfterSeconds: number, details: object): PlatformError =>
      new PlatformError('CONCURRENCY_LIMIT_EXCEEDED', message, { retryAfterSeconds, details: { ...details } });
    const ofAll = (message: string, retryAfterSeconds: number): PlatformError =>
      new PlatformError('SERVICE_UNAVAILABLE', message, { retryAfterSeconds });
    this.#queue = new FairQueue({ places, waitingPerHolder: max, waiting }, ({ reason, holdsAll }) => {
      if (reason === 'holderFull')
        return ofTenant(`The tenant already has ${max} waiting requests, the maximum.`, 1, { max });
      if (reason === 'full') return ofAll('The queue for this kind of work is full.', 1);
      return holdsAll
        ? ofTenant(`Another such request of the tenant is in progress and did not finish within ${seconds} s.`, 5, {
            max: 1,
          })
        : ofAll(`Other work of this kind did not finish within ${seconds} s.`, 5);
    });
  }

  /**
   * Does the work when the tenant has its turn. `first`: of those of its tenant it is the next, and is never refused,
   * because it holds locks or ends what has begun; else it throws 429 CONCURRENCY_LIMIT_EXCEEDED or 503
   * SERVICE_UNAVAILABLE, at once where too many wait, or when its time to wait has passed.
   */
  run<T>(tenantId: string, work: () => Promise<T>, options?: { first?: boolean }): Promise<T> {
    return this.#queue.run({ key: tenantId, max: 1 }, work, this.#waitMs, options);
  }

  /** Tenants that work or wait. */
  get size(): number {
    return this.#queue.holders;
  }
}
