/** The queue of jobs, and the turn that each of them has. */
import { LIMITS } from '../../lib/limits.ts';
import { jobQueue } from '../../mixins/jobs/queue.ts';
import type { JobName } from './deps.ts';

export const BULK_JOBS = jobQueue<JobName>('bulk.work', {
  // A job that does not get on ends by itself, after ATTEMPTS_MAX.
  attempts: 1_000,
  retrySeconds: 1,
  retryMaxSeconds: 600,
  pollSeconds: 2,
  // Chunks that this process works on at a time: writes of people find data and the database free.
  concurrency: 4,
  perTenant: LIMITS.bulk_processing_max,
  oneForEachKey: true,
});

/** Times that a job is taken up without getting on, over some hours. */
export const ATTEMPTS_MAX = 25;
