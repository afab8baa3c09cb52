/** Periodic work: forgets deletions that no sync token needs any more. May run twice without harm. */
import { allTenants } from '../../contracts/tenants.ts';
import { periodicQueue } from '../../mixins/jobs/queue.ts';
import { repeatForTenants } from '../../mixins/jobs/tenants.ts';
import { warnOf } from '../../mixins/log-failure.ts';
import type { Platform } from '../../mixins/platform.ts';
import { forgetRemovedSql } from './events/events.sql.ts';

const SWEEP = periodicQueue('calendar.sweep', { everySeconds: 3_600, pollSeconds: 60, firstAfterSeconds: 30 });

/** Registers the periodic sweep of all tenants, in which this process takes part. */
export function sweepPeriodically({ jobs, broker, log, database }: Platform): Promise<void> {
  return repeatForTenants(jobs, {
    queue: SWEEP,
    alsoSuspended: false,
    tenants: allTenants(broker),
    work: (tenantId) => database.shared('calendar', tenantId, (tx) => tx.query(forgetRemovedSql(tenantId))),
    failed: (tenantId, error) =>
      warnOf(log, error, 'Deletions of events were not forgotten; the next round tries again.', { tenantId }),
  });
}
