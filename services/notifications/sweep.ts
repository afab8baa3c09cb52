/** Periodic work: removes expired notifications, and asks auth for the states of mails. Doing it twice does no harm. */
import { allTenants } from '../../contracts/tenants.ts';
import { periodicQueue } from '../../mixins/jobs/queue.ts';
import { repeatForTenants } from '../../mixins/jobs/tenants.ts';
import { warnOf } from '../../mixins/log-failure.ts';
import type { Platform } from '../../mixins/platform.ts';
import type { NotificationsDeps } from './deps.ts';
import { removeExpiredSql } from './items.sql.ts';
import { settleMails } from './mails.ts';

const SWEEP = periodicQueue('notifications.sweep', { everySeconds: 3_600, pollSeconds: 60, firstAfterSeconds: 30 });

const BATCH = 1_000;

async function sweepTenant(
  deps: Pick<NotificationsDeps, 'database' | 'mailStates'>,
  tenantId: string,
  signal: AbortSignal,
): Promise<void> {
  await settleMails(deps, tenantId, signal);
  while (!signal.aborted) {
    const { rowCount } = await deps.database.shared('notifications', tenantId, (tx) =>
      tx.query(removeExpiredSql(tenantId, BATCH)),
    );
    if (rowCount < BATCH) return;
  }
}

/** Registers the periodic sweep of all tenants, in which this process takes part. */
export function sweepPeriodically({ jobs, broker, log }: Platform, deps: NotificationsDeps): Promise<void> {
  return repeatForTenants(jobs, {
    queue: SWEEP,
    alsoSuspended: false,
    tenants: allTenants(broker),
    work: (tenantId, signal) => sweepTenant(deps, tenantId, signal),
    failed: (tenantId, error) =>
      warnOf(log, error, 'Expired notifications were not removed; the next round tries again.', { tenantId }),
  });
}
