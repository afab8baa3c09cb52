/** Starts, cancels and deletes jobs. Source: docs/reference/bulk.md#states. */
import { createHash } from 'node:crypto';
import { BULK_STATES, type BulkState } from '../../../contracts/bulk.ts';
import type { Handler } from '../../../contracts/operations.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { digestHeader } from '../../../lib/values/digests.ts';
import { mutate } from '../../../mixins/mutation/mutate.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import type { BulkDeps } from '../deps.ts';
import {
  type BlobRow,
  blobsStatement,
  deleteJobStatement,
  type JobRow,
  jobStatement,
  setStateStatement,
} from './job.sql.ts';
import { permitted, requireScope } from './permission.ts';
import { presentJob } from './present.ts';
import { findJob, jobNotFound } from './read.ts';

export const startJob: Handler<'bulk.jobs.start', BulkDeps> = async (deps, request, call) => {
  const found = await findJob(deps, request, call.path.jobId);
  requireScope(request, found);
  await permitted(deps, request, found.request);
  return mutate(deps.database, request, call, {
    role: { service: 'bulk' },
    work: async (unit) => {
      const { tx } = unit;
      const { tenantId } = request;
      const { jobId, state, operation, objectApiName } = await lockedJob(unit, call.path.jobId);
      requireState(state, ['UPLOADED'], 'A job can be started once its parts have been uploaded.');
      const parts = await tx.all<BlobRow>(blobsStatement(tenantId, jobId, 'part'));
      refuseGaps(parts);
      const total = parts.reduce((sum, { rows }) => sum + rows, 0);
      const { approval: _, dryRun: __, approvalRequired: ___, ...context } = request;
      const row = await tx.one<JobRow>(setStateStatement(tenantId, jobId, 'QUEUED', { total, context }));
      await deps.enqueue(tx, { tenantId, jobId });
      const hash = createHash('sha256');
      for (const { sha256 } of parts) hash.update(sha256);
      // An approval is for exactly these parts: others have another digest.
      const facts = { operation, object: objectApiName, rows: total, parts: parts.length, digest: hash.digest('hex') };
      unit.audit({
        changes: {
          jobId: { from: jobId, to: jobId },
          state: { from: state, to: 'QUEUED' },
          ...Object.fromEntries(Object.entries(facts).map(([name, to]) => [name, { from: null, to }])),
        },
      });
      unit.tally.records = total;
      const job = presentJob(row);
      return { status: 202, body: unit.checkOnly ? { ...job, parts: parts.map(presentPart) } : job };
    },
  });
};

const presentPart = ({ number, rows, bytes, sha256 }: BlobRow): object => ({
  partNumber: number,
  bytes,
  rows,
  digest: digestHeader(sha256),
});

function refuseGaps(parts: readonly BlobRow[]): void {
  const last = parts.at(-1)?.number ?? 0;
  if (last === parts.length) return;
  const present = new Set(parts.map(({ number }) => number));
  const missing = Array.from({ length: last }, (_, i) => i + 1).filter((number) => !present.has(number));
  throw new PlatformError('JOB_STATE_CONFLICT', 'Parts are missing: they are numbered from 1 without a gap.', {
    details: { missingParts: missing.slice(0, 100) },
  });
}

export const cancelJob: Handler<'bulk.jobs.cancel', BulkDeps> = (deps, request, call) =>
  mutate(deps.database, request, call, {
    role: { service: 'bulk' },
    work: async (unit) => {
      const { jobId, state } = await lockedJob(unit, call.path.jobId);
      requireState(state, CANCELABLE, 'The job has ended.');
      // The process at work finishes its chunk, and then ends the job.
      const next = includes(BULK_STATES.works, state) ? 'CANCELING' : 'CANCELED';
      const row = await unit.tx.one<JobRow>(setStateStatement(request.tenantId, jobId, next));
      noteState(unit, row, state);
      if (next === 'CANCELED') unit.emit({ type: 'bulk.job.canceled', data: eventOf(row) });
      return { status: 202, body: presentJob(row) };
    },
  });

const includes = (states: readonly BulkState[], state: BulkState): boolean => states.includes(state);

const CANCELABLE: readonly BulkState[] = [...BULK_STATES.takesParts, ...BULK_STATES.waits, ...BULK_STATES.works];

export const deleteJob: Handler<'bulk.jobs.delete', BulkDeps> = (deps, request, call) =>
  mutate(deps.database, request, call, {
    role: { service: 'bulk' },
    work: async (unit): Promise<OperationReply> => {
      const { jobId, state } = await lockedJob(unit, call.path.jobId);
      requireState(state, DELETABLE, 'Cancel the job first: it is waiting or at work.');
      await unit.tx.query(deleteJobStatement(request.tenantId, jobId));
      unit.audit({ changes: { jobId: { from: jobId, to: null }, state: { from: state, to: null } } });
      unit.tally.records = 0;
      return { status: 204, body: null };
    },
  });

const DELETABLE: readonly BulkState[] = [...BULK_STATES.takesParts, ...BULK_STATES.hasEnded];

/** The content of an event about a job. */
export const eventOf = ({ jobId, operation, objectApiName, succeeded, failed }: JobRow): object => ({
  jobId,
  operation,
  objectApiName,
  succeeded,
  failed,
});

function noteState(unit: Unit, { jobId, state }: JobRow, before: BulkState): void {
  unit.audit({ changes: { jobId: { from: jobId, to: jobId }, state: { from: before, to: state } } });
  unit.tally.records = 0;
}

async function lockedJob({ tx, request }: Unit, jobId: string): Promise<JobRow> {
  const row = await tx.first<JobRow>(jobStatement(request, jobId, true));
  if (!row) throw jobNotFound();
  return row;
}

/** Throws JOB_STATE_CONFLICT unless the job is in one of the states. `message`: what the operation needs. */
export function requireState(state: BulkState, states: readonly BulkState[], message: string): void {
  if (!states.includes(state))
    throw new PlatformError('JOB_STATE_CONFLICT', `${message} It is ${state}.`, { details: { state } });
}
