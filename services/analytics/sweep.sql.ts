/** The statement that removes deleted dashboards. */
import { LIMITS } from '../../lib/limits.ts';
import { Sql } from '../../mixins/database/sql.ts';
import type { Statement } from '../../mixins/database/statement.ts';

/** Removes those of the deleted dashboards of a tenant that were deleted before the newest `max`. */
export function removeOldestDeletedSql(tenantId: string, max: number): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  return sql.statement(`DELETE FROM analytics.dashboards WHERE tenant_id = ${tenant} AND dashboard_id IN (
    SELECT dashboard_id FROM analytics.dashboards
    WHERE tenant_id = ${tenant} AND deleted_at IS NOT NULL
    ORDER BY deleted_at DESC, dashboard_id DESC OFFSET ${sql.bind(max, 'int')})`);
}

/** Removes up to `take` dashboards that were deleted long enough ago, with everything that belongs to them. */
export function removeDeletedSql(tenantId: string, take: number): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  return sql.statement(`DELETE FROM analytics.dashboards WHERE tenant_id = ${tenant} AND dashboard_id IN (
    SELECT dashboard_id FROM analytics.dashboards
    WHERE tenant_id = ${tenant} AND deleted_at < now() - make_interval(days => ${LIMITS.dashboard_kept_days})
    LIMIT ${sql.bind(take, 'int')} FOR UPDATE SKIP LOCKED)`);
}
