/** The queue of deployments: a job is enqueued in the transaction that inserts one and leads a worker to its tenant. */
import type { Tx } from '../../../mixins/database/database.ts';
import type { Jobs } from '../../../mixins/jobs/jobs.ts';
import type { Queue } from '../../../mixins/jobs/queue.ts';

const DEPLOYMENTS: Queue<{ readonly tenantId: string }> = {
  name: 'metadata.deployments',
  pollSeconds: 2,
  concurrency: 2,
  options: {
    retryLimit: 20,
    retryDelay: 1,
    retryBackoff: true,
    retryDelayMax: 60,
    // Without a sign of life for this long, the job goes to another worker.
    heartbeatSeconds: 60,
    expireInSeconds: 3_600,
    deleteAfterSeconds: 3_600,
  },
};

/** What a deployment is taken to last. */
const EACH_SECONDS = 60;
/** Priorities are whole numbers of 32 bits, enough for seconds over 68 years. */
const SINCE = Date.UTC(2026, 0, 1);

export class DeploymentJobs {
  readonly #jobs: Jobs;

  constructor(jobs: Jobs) {
    this.#jobs = jobs;
  }

  /** `work` runs a deployment of one tenant; when it throws, the job is tried again. */
  start(work: (tenantId: string) => Promise<void>): Promise<void> {
    return this.#jobs.work(DEPLOYMENTS, ({ tenantId }) => work(tenantId));
  }

  /**
   * Enqueues in the transaction `tx`: there is a job exactly when there is a deployment. `waiting`: deployments of the
   * tenant that come before. The job stands as far back as if each of them took its time, so that a tenant with a long
   * queue comes after one with a short queue, and nobody waits for ever.
   */
  enqueue(tx: Tx, tenantId: string, waiting = 0): Promise<void> {
    const seconds = Math.floor((Date.now() - SINCE) / 1_000) + waiting * EACH_SECONDS;
    return this.#jobs.enqueue(tx, DEPLOYMENTS, { tenantId }, -seconds);
  }

  /** Another look at a tenant whose first deployment another worker has. */
  enqueueLater(tenantId: string, at: Date): Promise<void> {
    return this.#jobs.later(DEPLOYMENTS, { tenantId }, at, tenantId);
  }

  /** After the commit: this process looks at once instead of at its next poll. */
  wake(): void {
    this.#jobs.wake(DEPLOYMENTS);
  }
}
