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

export class DeploymentJobs {
  readonly #jobs: Jobs;

  constructor(jobs: Jobs) {
    this.#jobs = jobs;
  }

  /** `work` runs the open deployments of one tenant; when it throws, the job is tried again. */
  start(work: (tenantId: string) => Promise<void>): Promise<void> {
    return this.#jobs.work(DEPLOYMENTS, ({ tenantId }) => work(tenantId));
  }

  /** Enqueues in the transaction `tx`: there is a job exactly when there is a deployment. */
  enqueue(tx: Tx, tenantId: string): Promise<void> {
    return this.#jobs.enqueue(tx, DEPLOYMENTS, { tenantId });
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
