/** Periodic work of the data service on every tenant: it removes expired rows, informs auth of users, and seals the audit trail. */
import { allTenants } from '../../../contracts/tenants.ts';
import { periodicQueue } from '../../../mixins/jobs/queue.ts';
import { repeatForTenants } from '../../../mixins/jobs/tenants.ts';
import { warnOf } from '../../../mixins/log-failure.ts';
import type { Platform } from '../../../mixins/platform.ts';
import type { OlderSchemas } from '../older-schema.ts';
import { sealTenant } from '../trail/chain.ts';
import { RetentionNumbers } from './numbers.ts';
import { sweepTenant, TENANT_MS, within } from './sweep.ts';

const SWEEP = periodicQueue('data.sweep', { everySeconds: 600, pollSeconds: 60, firstAfterSeconds: 5 });
const SEAL = periodicQueue('data.seal', { everySeconds: 30, pollSeconds: 15, firstAfterSeconds: 5 });

const FALLEN_BEHIND = 'Expired rows of a tenant are left, because there are very many; the next round goes on.';

/** Offers to do the periodic work in this process; each run is done by one of the processes that offer it. */
export async function startPeriodicWork(
  platform: Platform,
  sendUsers: (tenantId: string) => Promise<void>,
  olderSchemas: OlderSchemas,
): Promise<void> {
  const { database, jobs, metrics, broker, log } = platform;
  const numbers = new RetentionNumbers();
  numbers.register(metrics, database);
  const tenants = allTenants(broker);
  const failed = (message: string) => (tenantId: string, failure: unknown) =>
    void olderSchemas.explain(tenantId, failure).then((error) => {
      // The reason has been logged, once for each tenant.
      if (error === failure) warnOf(log, error, message, { tenantId });
    });
  await repeatForTenants(jobs, {
    queue: SWEEP,
    alsoSuspended: false,
    tenants,
    work: async (tenantId, signal) => {
      const inTime = within(TENANT_MS);
      const swept = await sweepTenant(database, tenantId, () => !signal.aborted && inTime());
      numbers.note(tenantId, swept);
      if (swept.unfinished.length > 0 && !signal.aborted) log.warn({ tenantId, left: swept.unfinished }, FALLEN_BEHIND);
      // Those of a process that died before it could.
      await sendUsers(tenantId);
    },
    failed: failed('Expired rows of a tenant were not removed; the next run tries again.'),
  });
  await repeatForTenants(jobs, {
    queue: SEAL,
    // Operators' actions on it are sealed as well.
    alsoSuspended: true,
    tenants,
    work: (tenantId, signal) => sealTenant(database, tenantId, () => signal.aborted),
    failed: failed('The audit trail of a tenant was not sealed; the next run tries again.'),
  });
}
