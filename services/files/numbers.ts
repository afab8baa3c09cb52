/** Numbers about the files of all tenants, for Prometheus. Every process of the service has the same. */
import { LIMITS } from '../../lib/limits.ts';
import type { Database } from '../../mixins/database/database.ts';
import type { Statement } from '../../mixins/database/statement.ts';
import { askedRow } from '../../mixins/metrics/asked-numbers.ts';
import type { Metrics } from '../../mixins/metrics/metrics.ts';

const NONE = { uploads: 0, bytes: 0, fullest: 0, unscanned: 0, oldestSeconds: 0 };

const statement = (): Statement => ({
  text: `SELECT uploads, bytes, fullest, unscanned,
    coalesce(extract(epoch FROM clock_timestamp() - oldest), 0)::float8 AS "oldestSeconds" FROM files.numbers()`,
});

/** Adds the numbers to the metrics of the process. */
export function registerNumbers(metrics: Metrics, database: Database): void {
  const read = askedRow<typeof NONE>(database, statement, NONE);
  metrics.gauge('erp_files_uploads_open', 'Open uploads of all tenants.', () => read().uploads);
  metrics.gauge('erp_files_bytes', 'Bytes of files and open uploads of all tenants.', () => read().bytes);
  metrics.gauge(
    'erp_files_fullest_tenant_ratio',
    'Part of the room for files that the tenant with the most has used.',
    () => read().fullest / LIMITS.files_of_tenant_max_bytes,
  );
  metrics.gauge('erp_files_unscanned', 'Files of all tenants that wait for their scan.', () => read().unscanned);
  metrics.gauge(
    'erp_files_unscanned_oldest_seconds',
    'For how long the oldest of them has waited.',
    () => read().oldestSeconds,
  );
}
