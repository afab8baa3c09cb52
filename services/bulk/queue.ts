/** The queue of bulk jobs. */
import { LIMITS } from '../../lib/limits.ts';
import { jobQueue } from '../../mixins/jobs/queue.ts';
import type { JobName } from './deps.ts';

export const BULK_JOBS = jobQueue<JobName>('bulk.work', {
  // High: a job without progress fails by itself, after ATTEMPTS_MAX.
  attempts: 1_000,
  retrySeconds: 1,
  retryMaxSeconds: 600,
  pollSeconds: 2,
  // Jobs that this process works on at a time. Low, so that data and the database stay free for people's requests.
  concurrency: 4,
  perTenant: LIMITS.bulk_processing_max,
  oneForEachKey: true,
});

/** Attempts without progress after which a job fails; they take some hours. */
export const ATTEMPTS_MAX = 25;
