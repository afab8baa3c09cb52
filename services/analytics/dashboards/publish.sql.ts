/** The statement that publishes a draft. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

const COLUMNS = 'name, description, timezone, widget_count, content';

/** Makes the draft of a dashboard its published version, in place of the one before. */
export function publishDraftSql(tenantId: string, dashboardId: string): Statement {
  const sql = new Sql();
  const replaced = COLUMNS.split(', ').map((column) => `${column} = excluded.${column}`);
  return sql.statement(`INSERT INTO analytics.dashboard_versions (tenant_id, dashboard_id, version, ${COLUMNS})
    SELECT tenant_id, dashboard_id, 'published', ${COLUMNS} FROM analytics.dashboard_versions
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND dashboard_id = ${sql.bind(dashboardId, 'uuid')}
      AND version = 'draft'
    ON CONFLICT (tenant_id, dashboard_id, version) DO UPDATE SET ${replaced.join(', ')}`);
}
