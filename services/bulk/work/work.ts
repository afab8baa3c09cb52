/**
 * Works on a job from where it has got to, until it has ended. Any number of processes may do so: each chunk is committed
 * under a key of its own, and whoever finds that another one got further leaves. Source: docs/reference/bulk.md#processing.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { BulkFailure, BulkState } from '../../../contracts/bulk.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { BulkDeps, JobName } from '../deps.ts';
import { type JobRow, lockTenantStatement, stateStatement, takeUpStatement } from '../jobs/job.sql.ts';
import { ATTEMPTS_MAX } from '../queue.ts';
import { exportRecords } from './export.ts';
import { importRows } from './import.ts';
import { advance, type Work } from './turn.ts';

/** How often a process looks whether a job may begin while others of its tenant are at work. */
const WAIT_MS = 1_000;

export async function workOn(deps: BulkDeps, { tenantId, jobId }: JobName, signal: AbortSignal): Promise<void> {
  const job = await takeUp(deps, { tenantId, jobId }, signal);
  if (!job) return;
  const work = { deps, tenantId, job, signal };
  try {
    if (job.state === 'CANCELING') await advance(work, { from: job.processed, succeeded: 0, failed: 0 });
    else await (job.operation === 'export' ? exportRecords(work) : importRows(work));
  } catch (error) {
    // It goes on in another process, from its last committed chunk.
    signal.throwIfAborted();
    const failure = failureOf(error, job);
    if (!failure) throw error;
    await endWith(work, failure);
  }
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

/** Why the job ends; null: it is tried again. */
function failureOf(error: unknown, { attempts }: JobRow): BulkFailure | null {
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

/** Ends a job at the last chunk that it has committed. */
async function endWith({ deps, tenantId, job, ...work }: Work, error: BulkFailure): Promise<void> {
  const now = await deps.database.shared('bulk', tenantId, (tx) =>
    tx.first<{ processed: number }>({
      text: 'SELECT processed FROM bulk.jobs WHERE tenant_id = $1::uuid AND job_id = $2::uuid',
      values: [tenantId, job.jobId],
    }),
  );
  if (!now) return;
  const ends = { state: 'FAILED', error } as const;
  await advance({ deps, tenantId, job, ...work }, { from: now.processed, succeeded: 0, failed: 0, ends });
}
