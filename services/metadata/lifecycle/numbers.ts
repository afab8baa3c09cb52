/** How many tenants there are, for operators; the same in every process. */
import type { Database } from '../../../mixins/database/database.ts';
import { askedRow } from '../../../mixins/metrics/asked-numbers.ts';
import type { Metrics, Sample } from '../../../mixins/metrics/metrics.ts';
import { type TenantNumbers, tenantNumbers } from './numbers.sql.ts';

export function registerTenantNumbers(metrics: Metrics, database: Database): void {
  const read = askedRow<TenantNumbers>(database, tenantNumbers, { active: 0, suspended: 0, deleting: 0 });
  metrics.gauges('erp_tenants', 'Tenants, by what becomes of them.', ['state'], () =>
    Object.entries(read()).map(([state, count]): Sample => [{ state }, count]),
  );
}
