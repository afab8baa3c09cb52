/** Periodic work: removes expired jobs and unused blobs, and queues jobs that were lost. May run twice without harm. */

import { BULK_STATES } from '../../contracts/bulk.ts';
import { allTenants } from '../../contracts/tenants.ts';
import { LIMITS } from '../../lib/limits.ts';
import { Sql } from '../../mixins/database/sql.ts';
import type { Statement } from '../../mixins/database/statement.ts';
import { periodicQueue } from '../../mixins/jobs/queue.ts';
import { repeatForTenants } from '../../mixins/jobs/tenants.ts';
import { warnOf } from '../../mixins/log-failure.ts';
import type { Platform } from '../../mixins/platform.ts';
import type { BulkDeps } from './deps.ts';
import { deleteJobStatement, statesSql } from './jobs/job.sql.ts';

const SWEEP = periodicQueue('bulk.sweep', { everySeconds: 300, pollSeconds: 30, firstAfterSeconds: 10 });

const BATCH = 500;
/** A blob that has not arrived this long after it was announced never will: its upload has timed out. */
const LOST_AFTER_SECONDS = (2 * LIMITS.bulk_upload_ms) / 1_000;

export async function sweepTenant(
  { database, blobs, enqueue }: Pick<BulkDeps, 'database' | 'blobs' | 'enqueue'>,
  tenantId: string,
  signal: AbortSignal,
): Promise<void> {
  const expired = await database.shared('bulk', tenantId, (tx) =>
    tx.all<{ jobId: string }>(expiredStatement(tenantId)),
  );
  for (const { jobId } of expired) {
    if (signal.aborted) return;
    await database.shared('bulk', tenantId, (tx) => tx.query(deleteJobStatement(tenantId, jobId)));
  }
  for (;;) {
    const unused = await database.shared('bulk', tenantId, (tx) => tx.all<{ key: string }>(unusedStatement(tenantId)));
    for (const { key } of unused) {
      if (signal.aborted) return;
      // The row goes last: it is what leads to the blob.
      await blobs.remove(key);
      await database.shared('bulk', tenantId, (tx) => tx.query(forgetStatement(tenantId, key)));
    }
    if (unused.length < BATCH) break;
  }
  await database.shared('bulk', tenantId, async (tx) => {
    for (const { jobId } of await tx.all<{ jobId: string }>(unfinishedStatement(tenantId)))
      await enqueue(tx, { tenantId, jobId });
  });
}

/** Removes blobs of a tenant in erasure; called until it removes none. Rows are deleted last: after a crash in between, the blobs are removed again. */
export async function eraseContents(
  { database, blobs }: Pick<BulkDeps, 'database' | 'blobs'>,
  tenantId: string,
): Promise<{ removed: number }> {
  const found = await database.shared('bulk', tenantId, (tx) => tx.all<{ key: string }>(allStatement(tenantId)));
  const keys = found.map(({ key }) => key);
  for (const key of keys) await blobs.remove(key);
  if (keys.length > 0) await database.shared('bulk', tenantId, (tx) => tx.query(eraseStatement(tenantId, keys)));
  return { removed: keys.length };
}

/** Registers the periodic sweep of all tenants, in which this process takes part. */
export function sweepPeriodically({ jobs, broker, log }: Platform, deps: BulkDeps): Promise<void> {
  return repeatForTenants(jobs, {
    queue: SWEEP,
    alsoSuspended: false,
    tenants: allTenants(broker),
    work: (tenantId, signal) => sweepTenant(deps, tenantId, signal),
    failed: (tenantId, error) =>
      warnOf(log, error, 'Old bulk jobs were not removed; the next round tries again.', { tenantId }),
  });
}

const IN_WORK = statesSql(BULK_STATES.waits, BULK_STATES.works);

function expiredStatement(tenantId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT job_id AS "jobId" FROM bulk.jobs WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND expires_at < now() AND state NOT IN ${IN_WORK} ORDER BY expires_at LIMIT ${BATCH}`);
}

/** Jobs that must be in the queue. One that is there already is not queued twice. */
function unfinishedStatement(tenantId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT job_id AS "jobId" FROM bulk.jobs WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND finished_at IS NULL AND state IN ${IN_WORK} ORDER BY job_id`);
}

function unusedStatement(tenantId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT blob_key AS key FROM bulk.blobs WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND (kind = 'garbage' OR kind = 'receiving' AND created_at < now() - make_interval(secs => ${LOST_AFTER_SECONDS}))
    ORDER BY created_at LIMIT ${BATCH}`);
}

function allStatement(tenantId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT blob_key AS key FROM bulk.blobs WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} LIMIT ${BATCH}`,
  );
}

function eraseStatement(tenantId: string, keys: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM bulk.blobs
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND blob_key = ANY (${sql.bind(keys, 'text[]')})`);
}

function forgetStatement(tenantId: string, key: string): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM bulk.blobs WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND blob_key = ${sql.bind(key, 'text')} AND kind IN ('garbage', 'receiving')`);
}
