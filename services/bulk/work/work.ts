/**
 * Works on a job from its last committed chunk until it ends. Several processes may do so at once: each chunk is committed under
 * a key of its own, and a process that finds that another got further leaves the job. Source: docs/reference/bulk.md#processing.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { BulkFailure, BulkState } from '../../../contracts/bulk.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { GotOn } from '../../../mixins/jobs/jobs.ts';
import type { BulkDeps, JobName } from '../deps.ts';
import { type JobRow, lockTenantStatement, type Progress, stateStatement, takeUpStatement } from '../jobs/job.sql.ts';
import { ATTEMPTS_MAX } from '../queue.ts';
import { exportRecords } from './export.ts';
import { importRows, settleChunk } from './import.ts';
import { advance, RunOver, type Work } from './turn.ts';

/** Interval at which a job tries to begin while others of its tenant are at work. */
const WAIT_MS = 1_000;

export async function workOn(deps: BulkDeps, { tenantId, jobId }: JobName, signal: AbortSignal): Promise<void> {
  const job = await takeUp(deps, { tenantId, jobId }, signal);
  if (!job) return;
  const work: Work = { deps, tenantId, job, signal, gotOn: false };
  try {
    if (job.state === 'CANCELING') await cancelRest(work);
    else await (job.operation === 'export' ? exportRecords(work) : importRows(work));
  } catch (error) {
    // This process stops: another one continues after the last committed chunk.
    signal.throwIfAborted();
    const ends = endOf(error, work.gotOn ? 0 : job.attempts);
    if (!ends) throw work.gotOn ? new GotOn('', { cause: error }) : error;
    await endWith(work, ends);
  }
}

/** Ends a job that was being canceled when its process was lost. */
async function cancelRest(work: Work): Promise<void> {
  const { operation, processed } = work.job;
  const from = operation === 'export' ? processed : await settleChunk(work, processed);
  // Has no effect when settleChunk has ended the job.
  await advance(work, { from, succeeded: 0, failed: 0 });
}

async function takeUp(
  { database }: BulkDeps,
  { tenantId, jobId }: JobName,
  signal: AbortSignal,
): Promise<JobRow | null> {
  for (;;) {
    const [job, state] = await database.shared(
      'bulk',
      tenantId,
      async (tx): Promise<[JobRow | null, BulkState | undefined]> => {
        await tx.query(lockTenantStatement(tenantId));
        const taken = await tx.first<JobRow>(takeUpStatement(tenantId, jobId));
        return [taken, (await tx.first<{ state: BulkState }>(stateStatement(tenantId, jobId)))?.state];
      },
    );
    if (job || state !== 'QUEUED') return job;
    await pause(WAIT_MS, undefined, { signal });
  }
}

type End = NonNullable<Progress['ends']>;

/** How the job ends; null: it is tried again. `attempts`: those since it last got on. */
function endOf(error: unknown, attempts: number): End | null {
  if (error instanceof RunOver) return { state: 'CANCELED' };
  const failure = failureOf(error, attempts);
  return failure && { state: 'FAILED', error: failure };
}

/** The error with which the job fails; null: it is tried again. `attempts`: those since it last got on. */
function failureOf(error: unknown, attempts: number): BulkFailure | null {
  if (error instanceof PlatformError && (!error.retryable || attempts >= ATTEMPTS_MAX)) {
    const { columns } = error.details ?? {};
    return {
      code: error.code,
      message: error.message,
      ...(Array.isArray(columns) ? { columns: columns.map(String) } : {}),
    };
  }
  if (attempts < ATTEMPTS_MAX) return null;
  return { code: 'INTERNAL_ERROR', message: 'The job could not go on after many attempts.' };
}

/** Ends a job after its last committed chunk. */
async function endWith(work: Work, ends: End): Promise<void> {
  const { deps, tenantId, job } = work;
  const now = await deps.database.shared('bulk', tenantId, (tx) =>
    tx.first<{ processed: number }>({
      text: 'SELECT processed FROM bulk.jobs WHERE tenant_id = $1::uuid AND job_id = $2::uuid',
      values: [tenantId, job.jobId],
    }),
  );
  if (!now) return;
  const from = job.operation === 'export' ? now.processed : await settleChunk(work, now.processed);
  await advance(work, { from, succeeded: 0, failed: 0, ends });
}
