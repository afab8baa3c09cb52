/** Statements that find dashboards. All of them decide in the same way who reaches which. */
import type { DashboardShare } from '../../../contracts/analytics.ts';
import { namedLockStatement } from '../../../mixins/database/named-lock.sql.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import type { DashboardContent } from '../models/dashboard-version.ts';
import type { Viewer } from '../viewer.ts';

/** How a viewer reaches a dashboard: like its owner, to change it, or to look at what was published. */
type Reach = 'own' | 'edit' | 'view';

export type Version = 'draft' | 'published';

/** A dashboard with what one of its versions is called. */
export interface DashboardRow {
  readonly dashboardId: string;
  readonly ownerId: string | null;
  readonly visibility: 'private' | 'shared' | 'public';
  readonly revision: number;
  /** At which the draft has last changed; sharing is not part of it. */
  readonly draftRevision: number;
  readonly publishedRevision: number | null;
  readonly publishedAt: string | null;
  readonly publishedById: string | null;
  readonly createdAt: string;
  readonly createdById: string | null;
  readonly updatedAt: string;
  readonly updatedById: string | null;
  readonly reach: Reach;
  /** Those that the viewer may see. */
  readonly sharedWith: readonly DashboardShare[];
  readonly version: Version;
  readonly name: string;
  readonly description: string | null;
  readonly timezone: string | null;
  readonly widgetCount: number;
}

export interface FullDashboardRow extends DashboardRow {
  readonly content: DashboardContent;
}

/** SQL boolean: the share `s` is given to the viewer. */
const isGivenTo = (viewer: Viewer, sql: Sql): string => `(
  (s.principal_type = 'user' AND s.principal_id = ${sql.bind(viewer.userId, 'text')})
  OR (s.principal_type = 'role' AND s.principal_id = ANY (${sql.bind(viewer.roles, 'text[]')}))
  OR (s.principal_type = 'group' AND s.principal_id = ANY (${sql.bind(viewer.groups, 'text[]')})))`;

const OF_DASHBOARD = 's.tenant_id = d.tenant_id AND s.dashboard_id = d.dashboard_id';

/** SQL of a `Reach`, of the dashboard `d`; NULL: the viewer does not reach it. Of two shares, `edit` comes first. */
const reachSql = (viewer: Viewer, sql: Sql): string => `CASE
  WHEN d.owner_id = ${sql.bind(viewer.userId, 'uuid')} OR ${sql.bind(viewer.modifiesAll, 'boolean')} THEN 'own'
  ELSE coalesce(
    CASE WHEN d.visibility <> 'private' THEN (SELECT min(s.access) FROM analytics.dashboard_shares s
      WHERE ${OF_DASHBOARD} AND ${isGivenTo(viewer, sql)}) END,
    CASE WHEN d.visibility = 'public' THEN 'view' END) END`;

/** The dashboards of a tenant with their `reach`, for a FROM clause. */
const reachedSql = (viewer: Viewer, sql: Sql, more = ''): string => `(
  SELECT d.*, ${reachSql(viewer, sql)} AS reach FROM analytics.dashboards d
  WHERE d.tenant_id = ${sql.bind(viewer.tenantId, 'uuid')} AND d.deleted_at IS NULL${more})`;

/** The version that a viewer sees who names none. */
const DEFAULT_VERSION = `CASE WHEN d.published_revision IS NULL THEN 'draft' ELSE 'published' END`;

const sharesSql = (viewer: Viewer, sql: Sql): string => `(
  SELECT coalesce(json_agg(json_build_object('principalType', s.principal_type, 'principalId', s.principal_id,
    'access', s.access) ORDER BY s.position), '[]')
  FROM analytics.dashboard_shares s WHERE ${OF_DASHBOARD} AND (d.reach <> 'view' OR ${isGivenTo(viewer, sql)}))`;

/** Columns of `DashboardRow`; `v` is the alias of the version. */
const columnsSql = (
  viewer: Viewer,
  sql: Sql,
  v: 'v' | 'd',
): string => `d.dashboard_id AS "dashboardId", d.owner_id AS "ownerId",
  d.visibility, d.revision, coalesce(d.draft_revision, d.revision) AS "draftRevision",
  d.published_revision AS "publishedRevision",
  d.published_at AS "publishedAt", d.published_by_id AS "publishedById", d.created_at AS "createdAt",
  d.created_by_id AS "createdById", d.updated_at AS "updatedAt", d.updated_by_id AS "updatedById", d.reach,
  ${sharesSql(viewer, sql)} AS "sharedWith",
  ${v}.version, ${v}.name, ${v}.description, ${v}.timezone, ${v}.widget_count AS "widgetCount"`;

const OF_VERSION = 'v.tenant_id = d.tenant_id AND v.dashboard_id = d.dashboard_id';

/**
 * A dashboard that the viewer reaches, with the version that they ask for; without one, with the one they see by
 * default. The version is null where there is none; whether they may see it is for the caller to say.
 */
export function findDashboardSql(viewer: Viewer, dashboardId: string, version: Version | null): Statement {
  const sql = new Sql();
  const found = reachedSql(viewer, sql, ` AND d.dashboard_id = ${sql.bind(dashboardId, 'uuid')}`);
  return sql.statement(`SELECT ${columnsSql(viewer, sql, 'v')}, v.content FROM ${found} d
    LEFT JOIN analytics.dashboard_versions v
      ON ${OF_VERSION} AND v.version = coalesce(${sql.bind(version, 'text')}, ${DEFAULT_VERSION})
    WHERE d.reach IS NOT NULL`);
}

/** Locks a dashboard until the end of the transaction: the statements behind it see what others did meanwhile. */
export function lockDashboardSql(tenantId: string, dashboardId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT FROM analytics.dashboards
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND dashboard_id = ${sql.bind(dashboardId, 'uuid')} FOR UPDATE`);
}

/** Dashboards that are there, of a tenant and of one owner. */
export function countDashboardsSql(tenantId: string, ownerId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT count(*)::int AS "ofTenant",
      (count(*) FILTER (WHERE owner_id = ${sql.bind(ownerId, 'uuid')}))::int AS "ofUser"
    FROM analytics.dashboards WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND deleted_at IS NULL`);
}

/** Lets one transaction of a tenant at a time make dashboards, until its end. */
export const lockTenantSql = (tenantId: string): Statement => namedLockStatement(`dashboards ${tenantId}`);

/** The same for texts that differ in case only, whatever the locale of the database; it also orders as people do. */
const caseless = (text: string): string => `lower(${text} COLLATE "und-x-icu")`;

type ListScope = 'all' | 'mine' | 'public' | 'shared';

interface ListQuery {
  readonly scope: ListScope;
  readonly search: string | null;
  readonly take: number;
  readonly skip: number;
}

/** A page of dashboards by name, in one row at least: `dashboardId` is null where the page has none. */
export function listDashboardsSql(viewer: Viewer, { scope, search, take, skip }: ListQuery): Statement {
  const sql = new Sql();
  const conditions = [
    // Without a published version there is nothing to look at.
    `(d.reach IN ('own', 'edit') OR (d.reach = 'view' AND d.published_revision IS NOT NULL))`,
  ];
  if (scope === 'mine') conditions.push(`d.owner_id = ${sql.bind(viewer.userId, 'uuid')}`);
  if (scope === 'public') conditions.push(`d.visibility = 'public'`);
  if (scope === 'shared')
    conditions.push(
      `d.owner_id IS DISTINCT FROM ${sql.bind(viewer.userId, 'uuid')}`,
      `d.visibility <> 'private'`,
      `EXISTS (SELECT FROM analytics.dashboard_shares s WHERE ${OF_DASHBOARD} AND ${isGivenTo(viewer, sql)})`,
    );
  if (search !== null) {
    const text = sql.bind(search, 'text');
    conditions.push(`(strpos(${caseless('v.name')}, ${caseless(text)}) > 0
      OR strpos(${caseless('v.description')}, ${caseless(text)}) > 0)`);
  }
  return sql.statement(`WITH found AS MATERIALIZED (
      SELECT d.*, v.version, v.name, v.description, v.timezone, v.widget_count
      FROM ${reachedSql(viewer, sql)} d
      JOIN analytics.dashboard_versions v ON ${OF_VERSION} AND v.version = ${DEFAULT_VERSION}
      WHERE ${conditions.join(' AND ')})
    SELECT counted.total, page.* FROM (SELECT count(*)::int AS total FROM found) counted
    LEFT JOIN LATERAL (
      SELECT ${columnsSql(viewer, sql, 'd')} FROM found d
      ORDER BY ${caseless('d.name')}, d.dashboard_id
      LIMIT ${sql.bind(take, 'int')} OFFSET ${sql.bind(skip, 'int')}) page ON true`);
}
