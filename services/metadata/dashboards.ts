/** Components of the type Dashboard, as analytics takes them over. */
import type { MetadataActions } from '../../contracts/metadata.ts';
import type { Database } from '../../mixins/database/database.ts';
import { type DashboardComponentRow, dashboardComponentsSql } from './dashboards.sql.ts';

type Action = MetadataActions['metadata.dashboards.list'];

/** Components in one answer: each may take a quarter of a megabyte. */
const PAGE = 20;

export async function listDashboardComponents(
  database: Database,
  { tenantId, since, after = '' }: Action['params'],
): Promise<Action['result']> {
  const rows = await database.shared('metadata', tenantId, (tx) =>
    tx.all<DashboardComponentRow>(dashboardComponentsSql(tenantId, { since, after, take: PAGE })),
  );
  const dashboards = rows.flatMap(({ apiName, updatedById, body }) =>
    apiName === null ? [] : [{ apiName, updatedById, body }],
  );
  return {
    version: rows[0]?.version ?? 0,
    dashboards,
    next: dashboards.length < PAGE ? null : (dashboards.at(-1)?.apiName ?? null),
  };
}
