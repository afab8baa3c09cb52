/** The statement that reads components of the type Dashboard, for the service that shows them. */
import { Sql } from '../../mixins/database/sql.ts';
import type { Statement } from '../../mixins/database/statement.ts';

export interface DashboardComponentRow {
  readonly version: number;
  /** null: there are no more; then the rest is null, too. */
  readonly apiName: string | null;
  readonly updatedById: string | null;
  /** JSON; null: it has not changed. */
  readonly body: string | null;
}

/** The next components by name with the version of the configuration, in one row at least. */
export function dashboardComponentsSql(
  tenantId: string,
  { since, after, take }: { readonly since: number; readonly after: string; readonly take: number },
): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  return sql.statement(`SELECT t.metadata_version AS version, c.full_name AS "apiName",
      c.updated_by_id AS "updatedById",
      CASE WHEN c.changed_at_version > ${sql.bind(since, 'int')} THEN c.body::text END AS body
    FROM metadata.tenants t LEFT JOIN LATERAL (
      SELECT full_name, updated_by_id, changed_at_version, body FROM metadata.components
      WHERE tenant_id = ${tenant} AND type = 'Dashboard' AND full_name COLLATE "C" > ${sql.bind(after, 'text')}
      ORDER BY full_name COLLATE "C" LIMIT ${sql.bind(take, 'int')}) c ON true
    WHERE t.id = ${tenant}`);
}
