/**
 * Removes what nothing needs any more: expired uploads, files that no record has, contents of no file, blobs of neither.
 * Doing it twice does no harm. Source: docs/reference/files.md#what-is-kept.
 */
import { allTenants } from '../../contracts/tenants.ts';
import type { Database } from '../../mixins/database/database.ts';
import { periodicQueue } from '../../mixins/jobs/queue.ts';
import { repeatForTenants } from '../../mixins/jobs/tenants.ts';
import { warnOf } from '../../mixins/log-failure.ts';
import type { Platform } from '../../mixins/platform.ts';
import type { FilesDeps } from './deps.ts';
import { SCANS } from './scan.ts';
import {
  type CheckedFile,
  checkedFilesSql,
  expiredUploadsSql,
  filesToCheckSql,
  forgetBlobsSql,
  removeContentsSql,
  removeFilesSql,
  unscannedSql,
  unusedBlobsSql,
  unusedContentsSql,
} from './sweep.sql.ts';

const SWEEP = periodicQueue('files.sweep', { everySeconds: 3_600, pollSeconds: 60, firstAfterSeconds: 30 });

const BATCH = 200;
/** Of each kind, in a round. */
const BATCHES_MAX = 50;

type SweepDeps = Pick<FilesDeps, 'database' | 'blobs' | 'jobs' | 'referenced'>;

export async function sweepTenant(deps: SweepDeps, tenantId: string, signal: AbortSignal): Promise<void> {
  for (const step of [removeUploads, removeFiles, removeContents, removeBlobs])
    for (let n = 0; n < BATCHES_MAX && !signal.aborted; n++) if ((await step(deps, tenantId)) < BATCH) break;
  await scanAgain(deps, tenantId);
}

/** Queues scans that were lost, or did not come along when the tenant was moved here. */
async function scanAgain({ database, jobs }: SweepDeps, tenantId: string): Promise<void> {
  const waiting = await own(database, tenantId, (tx) => tx.all<{ sha256: string }>(unscannedSql(tenantId, BATCH)));
  for (const { sha256 } of waiting) await jobs.enqueue(SCANS, { tenantId, sha256 });
}

const own = <T>(database: Database, tenantId: string, ...[work]: [Parameters<typeof database.shared<T>>[2]]) =>
  database.shared('files', tenantId, work);

const removeUploads = async ({ database }: SweepDeps, tenantId: string): Promise<number> =>
  (await own(database, tenantId, (tx) => tx.query(expiredUploadsSql(tenantId, BATCH)))).rowCount;

async function removeFiles({ database, referenced }: SweepDeps, tenantId: string): Promise<number> {
  const files = await own(database, tenantId, (tx) => tx.all<CheckedFile>(filesToCheckSql(tenantId, BATCH)));
  if (files.length === 0) return 0;
  const attached = await referenced({ tenantId, files });
  const ids = files.map(({ fileId }) => fileId);
  await own(database, tenantId, async (tx) => {
    const kept = new Set(attached);
    await tx.query(
      removeFilesSql(
        tenantId,
        ids.filter((id) => !kept.has(id)),
      ),
    );
    await tx.query(checkedFilesSql(tenantId, ids, attached));
  });
  return files.length;
}

const removeContents = ({ database }: SweepDeps, tenantId: string): Promise<number> =>
  own(database, tenantId, async (tx) => {
    const unused = await tx.all<{ sha256: string }>(unusedContentsSql(tenantId, BATCH));
    const hashes = unused.map(({ sha256 }) => sha256);
    if (hashes.length > 0) await tx.query(removeContentsSql(tenantId, hashes));
    return hashes.length;
  });

/** Rows are deleted last: after a crash in between, the blobs are removed again. */
async function removeBlobs({ database, blobs }: SweepDeps, tenantId: string, all = false): Promise<number> {
  const found = await own(database, tenantId, (tx) => tx.all<{ key: string }>(unusedBlobsSql(tenantId, BATCH, all)));
  const keys = found.map(({ key }) => key);
  for (const key of keys) await blobs.remove(key);
  if (keys.length > 0) await own(database, tenantId, (tx) => tx.query(forgetBlobsSql(tenantId, keys)));
  return keys.length;
}

/** Removes blobs of a tenant in erasure; called until it removes none. */
export const eraseContents = async (deps: SweepDeps, tenantId: string): Promise<{ removed: number }> => ({
  removed: await removeBlobs(deps, tenantId, true),
});

/** Registers the periodic sweep of all tenants, in which this process takes part. */
export function sweepPeriodically({ jobs, broker, log }: Platform, deps: SweepDeps): Promise<void> {
  return repeatForTenants(jobs, {
    queue: SWEEP,
    alsoSuspended: false,
    tenants: allTenants(broker),
    work: (tenantId, signal) => sweepTenant(deps, tenantId, signal),
    failed: (tenantId, error) =>
      warnOf(log, error, 'Files that nothing needs were not removed; the next round tries again.', { tenantId }),
  });
}
