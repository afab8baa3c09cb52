/** Queues as services declare them: once, where their work is defined. */
import type { Queue as BossQueue } from 'pg-boss';

/** Settings of a queue in pg-boss; the units are in the names. */
type QueueOptions = Omit<BossQueue, 'name' | 'partition' | 'notify'>;

/**
 * Ids of what the job is about, never its content: the tables of the queues are shared by several services, and records,
 * addresses and secrets stay in tables of their owner.
 */
export interface JobPayload {
  readonly tenantId: string;
}

/** Jobs that are enqueued with a change; see Jobs.enqueue and Jobs.work. */
export interface JobQueue<P extends JobPayload> {
  /** `<service>.<noun>`, such as `data.userSync`. */
  readonly name: string;
  readonly options: QueueOptions;
  readonly pollSeconds: number;
  /** Jobs that one process works on at a time. */
  readonly concurrency: number;
  /**
   * Jobs of one tenant that all processes work on at a time; its further jobs wait while those of other tenants pass.
   * It keeps turns fair and excludes nothing: workers that look at the same moment may take one more each.
   */
  readonly perTenant: number;
  /** Exists for its type. */
  readonly payload?: P;
}

/** Work that is done again and again by one process at a time; see Jobs.repeat. */
export interface PeriodicQueue {
  /** `<service>.<noun>`, such as `data.sweep`. */
  readonly name: string;
  readonly options: QueueOptions;
  /** How often a process looks for a round that is due. */
  readonly pollSeconds: number;
  readonly everySeconds: number;
  /** The first round begins after one to three times this long, so that a starting process and the others are up. */
  readonly firstAfterSeconds: number;
}

/** Seconds without a sign of life from its process after which a job goes to another one. */
const HEARTBEAT_SECONDS = 30;
/** The longest that pg-boss accepts is a day; a round of very many tenants may take hours. */
const EXPIRE_SECONDS = 23 * 3_600;
const DELETE_DONE_SECONDS = 3_600;
/** pg-boss deletes what has waited for so long. */
const KEEP_SECONDS = 365 * 24 * 3_600;

/** Queue of jobs whose last attempt failed: operators see them and send them again. */
export const DEAD_LETTERS = {
  name: 'jobs.dead',
  options: { policy: 'standard', retentionSeconds: KEEP_SECONDS },
} as const;

interface JobTimes {
  /** Attempts before the job becomes a dead letter. */
  readonly attempts: number;
  /** Wait after the first failed attempt; it doubles with each one, up to `retryMaxSeconds`. */
  readonly retrySeconds: number;
  readonly retryMaxSeconds: number;
  readonly pollSeconds: number;
  readonly concurrency: number;
  readonly perTenant: number;
  /** Of jobs with the same key at most one waits or is at work. */
  readonly oneForEachKey: boolean;
}

export const jobQueue = <P extends JobPayload>(
  name: string,
  { attempts, retrySeconds, retryMaxSeconds, oneForEachKey, ...work }: JobTimes,
): JobQueue<P> => ({
  name,
  ...work,
  options: {
    policy: oneForEachKey ? 'exclusive' : 'standard',
    heartbeatSeconds: HEARTBEAT_SECONDS,
    retryLimit: attempts - 1,
    retryBackoff: true,
    retryDelay: retrySeconds,
    retryDelayMax: retryMaxSeconds,
    deadLetter: DEAD_LETTERS.name,
    expireInSeconds: EXPIRE_SECONDS,
    deleteAfterSeconds: DELETE_DONE_SECONDS,
    retentionSeconds: KEEP_SECONDS,
  },
});

export const periodicQueue = (
  name: string,
  times: Pick<PeriodicQueue, 'everySeconds' | 'pollSeconds' | 'firstAfterSeconds'>,
): PeriodicQueue => ({
  name,
  ...times,
  options: {
    // One round waits or is at work, never two: the round that ends enqueues the next one.
    policy: 'exclusive',
    heartbeatSeconds: HEARTBEAT_SECONDS,
    // A lost round is begun again however often that happens: if it were given up, no other would follow.
    retryLimit: 1_000_000,
    retryDelay: 0,
    expireInSeconds: EXPIRE_SECONDS,
    deleteAfterSeconds: DELETE_DONE_SECONDS,
  },
});
