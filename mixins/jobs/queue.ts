/** A queue of periodic work as a service declares it: once, where its work is defined. */
import type { Queue as BossQueue } from 'pg-boss';

/** Work that is done again and again by one process at a time; see Jobs.repeat. */
export interface PeriodicQueue {
  /** `<service>.<noun>`, such as `data.sweep`. */
  readonly name: string;
  /** PostgreSQL's settings of the queue; the units are in the names. */
  readonly options: Omit<BossQueue, 'name' | 'partition' | 'notify'>;
  /** How often a process looks for a round that is due. */
  readonly pollSeconds: number;
  readonly everySeconds: number;
  /** A starting process and the others get this long to come up before the first round, and up to twice more. */
  readonly firstAfterSeconds: number;
}

/** Seconds without a sign of life from its process after which a round goes to another one. */
const ROUND_HEARTBEAT_SECONDS = 30;

export const periodicQueue = (
  name: string,
  times: Pick<PeriodicQueue, 'everySeconds' | 'pollSeconds' | 'firstAfterSeconds'>,
): PeriodicQueue => ({
  name,
  ...times,
  options: {
    // One round waits or is at work, never two: the round that ends enqueues the next one.
    policy: 'exclusive',
    heartbeatSeconds: ROUND_HEARTBEAT_SECONDS,
    // A lost round is begun again however often that happens: if it were given up, no other would follow.
    retryLimit: 1_000_000,
    retryDelay: 0,
    // The longest that pg-boss accepts is a day; a round of very many tenants may take hours.
    expireInSeconds: 23 * 3_600,
    deleteAfterSeconds: 3_600,
  },
});
