/** What each chunk of a job needs: the checks before it, its context, and the commit of its progress. */

import { setTimeout as pause } from 'node:timers/promises';
import type { BulkState } from '../../../contracts/bulk.ts';
import type { ObjectColumns } from '../../../contracts/data/columns.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { Notice } from '../../../lib/notice.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import { serviceRole, tenantRole } from '../../../mixins/database/roles.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { CallerSql, outboxSql } from '../../../mixins/mutation/audit.ts';
import type { BulkDeps } from '../deps.ts';
import { eventOf } from '../jobs/change.ts';
import { type JobRow, type Progress, progressStatement } from '../jobs/job.sql.ts';
import { permitted } from '../jobs/permission.ts';

/** A job that is taken up. */
export interface Work {
  readonly deps: BulkDeps;
  readonly tenantId: string;
  readonly job: JobRow;
  readonly signal: AbortSignal;
  /** Set by advance() once rows are committed. */
  gotOn: boolean;
}

const EVENTS: Partial<Record<BulkState, string>> = {
  COMPLETED: 'bulk.job.completed',
  FAILED: 'bulk.job.failed',
  CANCELED: 'bulk.job.canceled',
};

/**
 * Commits the progress of a job together with `more`, and an event when the job has ended. Answers false when this process must
 * leave the job, because it has ended or another process got further.
 */
export async function advance(
  work: Work,
  progress: Progress,
  more: (tx: Tx) => Promise<unknown> = async () => {},
): Promise<boolean> {
  const { deps, tenantId, job } = work;
  const goesOn = await deps.database.shared('bulk', tenantId, async (tx) => {
    const row = await tx.first<JobRow>(progressStatement(tenantId, job.jobId, progress));
    if (!row) return false;
    await more(tx);
    const type = EVENTS[row.state];
    if (type !== undefined) {
      tx.actAs(tenantRole(tenantId));
      const sql = new Sql();
      const event = { type, data: sql.bind(JSON.stringify(eventOf(row)), 'jsonb') };
      await tx.query(sql.statement(outboxSql(tx.schema, new CallerSql(sql.for(contextOf(job))), event)));
      if (row.request.notify && row.state !== 'CANCELED') await deps.notify(tx, contextOf(job), noticeOf(row));
      tx.actAs(serviceRole('bulk', tenantId));
    }
    return row.state === 'PROCESSING';
  });
  work.gotOn ||= progress.succeeded + progress.failed > 0;
  return goesOn;
}

const noticeOf = ({ jobId, state, userId, objectApiName, succeeded, failed }: JobRow): Notice => ({
  type: state === 'FAILED' ? 'bulkJobFailed' : 'bulkJobFinished',
  severity: state === 'FAILED' ? 'warning' : 'info',
  recipientIds: [userId],
  data: { object: objectApiName, succeeded, failed },
  action: { kind: 'job', id: jobId },
  dedupeKey: jobId,
});

/** The context in which records are read and written: the user, client and request that started the job. */
export function contextOf({ context }: JobRow): RequestContext {
  if (!context) throw new Error('Assertion failed: a job that is at work was started');
  const { agentRunId, aboutRunId: _, ...started } = context;
  return {
    ...started,
    // The run may have ended; what is changed is still named after it.
    agentRunId: null,
    ...(agentRunId === null ? {} : { aboutRunId: agentRunId }),
    channel: 'job',
    ip: null,
    tokenExpiresAt: null,
    deadline: platformTime() + LIMITS.bulk_chunk_ms,
  };
}

/** The run of an agent that started the job was canceled or has expired. */
export class RunOver extends Error {
  override readonly name = 'RunOver';
}

/** A job pauses for this many times the duration of its checks, which take longer the busier the platform is. */
const PAUSE_FACTOR = 2;
const PAUSE_MAX_MS = 2_000;

/**
 * Called before each chunk: checks that the user may still do this, and pauses to give way to other work.
 * @throws RunOver, or PlatformError TENANT_SUSPENDED, TOKEN_REVOKED, or a refusal of permitted().
 */
export async function nextTurn({ deps, tenantId, job, signal }: Work): Promise<ObjectColumns> {
  signal.throwIfAborted();
  const context = contextOf(job);
  const asked = performance.now();
  if (await deps.isSuspended(tenantId)) throw new PlatformError('TENANT_SUSPENDED', 'The tenant is suspended.');
  if (!(await deps.isLiving(context)))
    throw new PlatformError(
      'TOKEN_REVOKED',
      'The connection that started the job has ended, or its client is disabled.',
    );
  const runId = context.aboutRunId;
  if (runId !== undefined && (await deps.isRunOver(tenantId, runId))) throw new RunOver();
  const object = await permitted(deps, context, job.request);
  const pauseMs = Math.min(PAUSE_MAX_MS, PAUSE_FACTOR * (performance.now() - asked));
  deps.numbers.pausedMs += pauseMs;
  await pause(pauseMs, undefined, { signal });
  return object;
}
