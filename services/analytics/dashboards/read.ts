/** Dashboards as they are read. Source: docs/reference/analytics.md. */

import type { Handler } from '../../../contracts/operations.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { matchesEtag } from '../../../lib/values/etags.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import type { AnalyticsDeps } from '../deps.ts';
import { type Viewer, viewerOf } from '../viewer.ts';
import { etagOf, presentDashboard, presentSummary } from './present.ts';
import {
  type DashboardRow,
  type FullDashboardRow,
  findDashboardSql,
  listDashboardsSql,
  type Version,
} from './read.sql.ts';

export const dashboardNotFound = (): PlatformError =>
  new PlatformError('DASHBOARD_NOT_FOUND', 'There is no such dashboard, or it is not shared with you.');

/** A dashboard in a version that the viewer may see; without `version` in the one that is theirs. */
export async function visibleDashboard(
  tx: Tx,
  viewer: Viewer,
  dashboardId: string,
  version: Version | null,
): Promise<FullDashboardRow> {
  const row = await tx.first<FullDashboardRow>(findDashboardSql(viewer, dashboardId.toLowerCase(), version));
  if (!row) throw dashboardNotFound();
  // The statement finds no version where there is none.
  if (row.version === null || (row.version === 'draft' && row.reach === 'view'))
    throw new PlatformError(
      'DASHBOARD_VERSION_NOT_FOUND',
      row.reach === 'view' && version === 'draft'
        ? 'The draft of a dashboard is for those who may change it.'
        : `The dashboard has no ${version ?? 'published'} version.`,
    );
  return row;
}

export const getDashboard: Handler<'analytics.dashboards.get', AnalyticsDeps> = async (deps, request, call) => {
  const viewer = await viewerOf(deps, request);
  const row = await deps.database.shared('analytics', viewer.tenantId, (tx) =>
    visibleDashboard(tx, viewer, call.path.dashboardId, call.query.version ?? null),
  );
  const body = presentDashboard(row, viewer);
  const headers = { ETag: etagOf(body) };
  if (matchesEtag(call.headers.ifNoneMatch, headers.ETag)) return { status: 304, headers, body: null };
  return { headers, body };
};

export const listDashboards: Handler<'analytics.dashboards.list', AnalyticsDeps> = async (deps, request, call) => {
  const viewer = await viewerOf(deps, request);
  const { scope = 'all', search, page = 1, pageSize = LIMITS.dashboard_page_size_default } = call.query;
  const asked = { scope, search: search ?? null, take: pageSize, skip: (page - 1) * pageSize };
  const rows = await deps.database.shared('analytics', viewer.tenantId, (tx) =>
    tx.all<{ total: number; dashboardId: null } | ({ total: number } & DashboardRow)>(listDashboardsSql(viewer, asked)),
  );
  return {
    body: {
      records: rows.flatMap((row) => (row.dashboardId === null ? [] : [presentSummary(row, viewer)])),
      page,
      pageSize,
      total: rows[0]?.total ?? 0,
      nextCursor: null,
    },
  };
};
