/** Removes dashboards that were deleted long enough ago. Doing it twice does no harm. */

import { allTenants } from '../../contracts/tenants.ts';
import { LIMITS } from '../../lib/limits.ts';
import type { Database } from '../../mixins/database/database.ts';
import { periodicQueue } from '../../mixins/jobs/queue.ts';
import { repeatForTenants } from '../../mixins/jobs/tenants.ts';
import { warnOf } from '../../mixins/log-failure.ts';
import type { Platform } from '../../mixins/platform.ts';
import { removeDeletedSql, removeOldestDeletedSql } from './sweep.sql.ts';

const SWEEP = periodicQueue('analytics.sweep', { everySeconds: 3_600, pollSeconds: 60, firstAfterSeconds: 10 });

/** Dashboards removed in one statement, so that it never holds many locks. */
const BATCH = 500;

/** Answers how many were removed. */
export async function removeDeleted(database: Database, tenantId: string): Promise<number> {
  await database.shared('analytics', tenantId, (tx) =>
    tx.query(removeOldestDeletedSql(tenantId, LIMITS.dashboards_deleted_max)),
  );
  let removed = 0;
  for (;;) {
    const { rowCount } = await database.shared('analytics', tenantId, (tx) =>
      tx.query(removeDeletedSql(tenantId, BATCH)),
    );
    removed += rowCount;
    if (rowCount < BATCH) return removed;
  }
}

/** Offers to do it in this process, for every tenant again and again. */
export function sweepPeriodically({ database, jobs, broker, log }: Platform): Promise<void> {
  return repeatForTenants(jobs, {
    queue: SWEEP,
    alsoSuspended: false,
    tenants: allTenants(broker),
    work: (tenantId) => removeDeleted(database, tenantId),
    failed: (tenantId, error) =>
      warnOf(log, error, 'Deleted dashboards were not removed; the next round tries again.', { tenantId }),
  });
}
