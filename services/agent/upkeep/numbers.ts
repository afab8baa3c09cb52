/** Numbers about the runs of all tenants, for Prometheus. Every process of the service has the same. */
import type { Database } from '../../../mixins/database/database.ts';
import type { Metrics } from '../../../mixins/metrics/metrics.ts';
import { type Numbers, numbersStatement } from './upkeep.sql.ts';

/** The database is asked when somebody looks, and at most so often. */
const FRESH_MS = 10_000;

/** Adds the numbers to the metrics of the process. They are those of the look before, so that no scrape waits. */
export function registerNumbers(metrics: Metrics, database: Database): void {
  let askedAt = Number.NEGATIVE_INFINITY;
  let numbers: Numbers = { runs: 0, approvals: 0, overdueSeconds: 0 };
  const read = (): Numbers => {
    const now = performance.now();
    if (now - askedAt < FRESH_MS) return numbers;
    askedAt = now;
    database
      .login((tx) => tx.one<Numbers>(numbersStatement()))
      .then(
        (found) => (numbers = found),
        // The metrics of the database say that it does not answer.
        () => {},
      );
    return numbers;
  };
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
