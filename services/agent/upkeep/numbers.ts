/** Numbers about the runs of all tenants, for Prometheus. Every process of the service has the same. */
import type { Database } from '../../../mixins/database/database.ts';
import { askedRow } from '../../../mixins/metrics/asked-numbers.ts';
import type { Metrics } from '../../../mixins/metrics/metrics.ts';
import { type Numbers, numbersStatement } from './upkeep.sql.ts';

/** Adds the numbers to the metrics of the process. */
export function registerNumbers(metrics: Metrics, database: Database): void {
  const read = askedRow<Numbers>(database, numbersStatement, { runs: 0, approvals: 0, overdueSeconds: 0 });
  metrics.gauge('erp_agent_runs_active', 'Active runs of all tenants.', () => read().runs);
  metrics.gauge(
    'erp_agent_approvals_waiting',
    'Approvals of all tenants that wait for people.',
    () => read().approvals,
  );
  metrics.gauge(
    'erp_agent_expiry_lag_seconds',
    'For how long what has passed its time has not been written down.',
    () => read().overdueSeconds,
  );
}
