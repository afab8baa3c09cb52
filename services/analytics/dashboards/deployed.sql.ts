/** Statements about dashboards that deployments have brought. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

/** The version of the configuration whose dashboards are here; no row: none was taken over. */
export function deployedVersionSql(tenantId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT metadata_version AS version FROM analytics.deployed
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}`);
}

export function setDeployedVersionSql(tenantId: string, version: number): Statement {
  const sql = new Sql();
  return sql.statement(`INSERT INTO analytics.deployed (tenant_id, metadata_version)
    VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(version, 'int')})
    ON CONFLICT (tenant_id) DO UPDATE SET metadata_version = excluded.metadata_version`);
}

/** The dashboards of components, locked in the order of their ids. */
export function deployedDashboardsSql(tenantId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT dashboard_id AS "dashboardId", api_name AS "apiName", revision FROM analytics.dashboards
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND api_name IS NOT NULL AND deleted_at IS NULL
    ORDER BY dashboard_id FOR UPDATE`);
}
