/**
 * Creating, changing, publishing and deleting dashboards. Every change raises the one revision that the next change
 * must name. Source: docs/reference/analytics.md#revisions.
 */

import type { DashboardShare, UpdateBody } from '../../../contracts/analytics.ts';
import { addressOf, type Handler } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { contentProblems } from '../../../lib/dashboards/content.ts';
import type { ViolationCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { ViolationList } from '../../../lib/errors/violation-list.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { OperationCall, OperationReply } from '../../../lib/operation.ts';
import { isUuid, uuidv7 } from '../../../lib/values/ids.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import { NOW } from '../../../mixins/models/sequelize.ts';
import { mutate } from '../../../mixins/mutation/mutate.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import type { AnalyticsDeps } from '../deps.ts';
import { removeOldestDeletedSql } from '../sweep.sql.ts';
import { type Viewer, viewerOf } from '../viewer.ts';
import { type Content, contentOf, refuseProblems, refuseSize } from './content.ts';
import { etagOf, presentDashboard } from './present.ts';
import { type Catalogs, catalogsFor, queryProblems } from './queries.ts';
import {
  countDashboardsSql,
  type FullDashboardRow,
  findDashboardSql,
  lockDashboardSql,
  lockTenantSql,
  type Version,
} from './read.sql.ts';
import { dashboardNotFound, visibleDashboard } from './read.ts';
import { expectedRevisionOf, requireRevision } from './revision.ts';
import { type DashboardKey, insertDashboard, publishDraft, updateDashboard, updateDraft } from './store.ts';

export const createDashboard: Handler<'analytics.dashboards.create', AnalyticsDeps> = async (deps, request, call) => {
  const viewer = await viewerOf(deps, request);
  const content = contentOf(call.body, null);
  const asked = askedOf(deps, viewer, call.body);
  return answered(deps, request, call, viewer, async (unit) => {
    const { tx } = unit;
    const key = { tenantId: viewer.tenantId, dashboardId: uuidv7() };
    refuseContent(content, null, await asked);
    await tx.query(lockTenantSql(viewer.tenantId));
    const { ofTenant, ofUser } = await tx.one<{ ofTenant: number; ofUser: number }>(
      countDashboardsSql(viewer.tenantId, viewer.userId),
    );
    refuseTooMany(ofTenant, LIMITS.dashboards_per_tenant_max, 'A tenant');
    refuseTooMany(ofUser, LIMITS.dashboards_per_user_max, 'A user');
    await insertDashboard(tx, key, content, viewer);
    const row = await visibleDashboard(tx, viewer, key.dashboardId, 'draft');
    unit.audit({ recordId: key.dashboardId, kind: 'create', changes: changesOf(null, content, row.revision) });
    const reply = replyOf(row, viewer);
    return {
      ...reply,
      status: 201,
      headers: { ...reply.headers, Location: addressOf('analytics.dashboards.get', { dashboardId: key.dashboardId }) },
    };
  });
};

export const updateDashboardDraft: Handler<'analytics.dashboards.update', AnalyticsDeps> = async (
  deps,
  request,
  call,
) => {
  const { expectedRevision: _, ...given } = call.body;
  const expectedRevision = expectedRevisionOf(call.headers, call.body);
  const viewer = await viewerOf(deps, request);
  const asked = askedOf(deps, viewer, given);
  return answered(deps, request, call, viewer, async (unit) => {
    const { tx } = unit;
    const before = await lockedDashboard(tx, viewer, call.path.dashboardId);
    const former = contentOfRow(before);
    const content = contentOf(given, former);
    refuseSharing(before, content, former);
    requireRevision(expectedRevision, before.revision);
    if (Object.keys(given).length === 0)
      throw new PlatformError('VALIDATION_FAILED', 'The body contains no change.', {
        errors: [violation('', 'FIELD_REQUIRED', 'Name what to change.')],
      });
    refuseContent(content, former, await asked);
    const key = keyOf(before, viewer);
    const { visibility } = content;
    const revision = before.revision + 1;
    const draftRevision = shown(content) === shown(former) ? before.draftRevision : revision;
    await updateDraft(tx, key, content, former);
    await updateDashboard(tx, key, { visibility, revision, draftRevision }, viewer);
    const row = await visibleDashboard(tx, viewer, key.dashboardId, 'draft');
    unit.audit({ recordId: key.dashboardId, kind: 'update', changes: changesOf(former, content, row.revision) });
    return replyOf(row, viewer);
  });
};

export const publishDashboard: Handler<'analytics.dashboards.publish', AnalyticsDeps> = async (deps, request, call) => {
  const expectedRevision = expectedRevisionOf(call.headers, call.body);
  const viewer = await viewerOf(deps, request);
  return answered(deps, request, call, viewer, async (unit) => {
    const { tx } = unit;
    const before = await lockedDashboard(tx, viewer, call.path.dashboardId);
    requireRevision(expectedRevision, before.revision);
    const key = keyOf(before, viewer);
    const revision = before.revision + 1;
    await publishDraft(tx, key);
    await updateDashboard(
      tx,
      key,
      { revision, publishedRevision: revision, publishedAt: NOW, publishedById: viewer.userId },
      viewer,
    );
    const row = await visibleDashboard(tx, viewer, key.dashboardId, 'published');
    const { comment = null } = call.body;
    unit.audit({
      recordId: key.dashboardId,
      kind: 'publish',
      changes: {
        publishedRevision: { from: before.publishedRevision, to: revision },
        comment: { from: null, to: comment },
      },
    });
    unit.emit({
      type: 'analytics.dashboard.published',
      recordId: key.dashboardId,
      data: { dashboardId: key.dashboardId, revision, comment },
    });
    return { ...replyOf(row, viewer), status: 201 };
  });
};

export const deleteDashboard: Handler<'analytics.dashboards.delete', AnalyticsDeps> = async (deps, request, call) => {
  const expectedRevision = expectedRevisionOf(call.headers, null);
  const viewer = await viewerOf(deps, request);
  return change(deps, request, call, async (unit) => {
    const { tx } = unit;
    const before = await lockedDashboard(tx, viewer, call.path.dashboardId);
    refuseDeletion(before);
    requireRevision(expectedRevision, before.revision);
    const key = keyOf(before, viewer);
    const revision = before.revision + 1;
    await updateDashboard(tx, key, { revision, deletedAt: NOW, deletedById: viewer.userId }, viewer);
    await tx.query(removeOldestDeletedSql(viewer.tenantId, LIMITS.dashboards_deleted_max));
    unit.audit({ recordId: key.dashboardId, kind: 'delete', changes: { name: { from: before.name, to: null } } });
    unit.emit({
      type: 'analytics.dashboard.deleted',
      recordId: key.dashboardId,
      data: { dashboardId: key.dashboardId, revision },
    });
    return { status: 204, body: null };
  });
};

const change = (
  { database }: AnalyticsDeps,
  request: RequestContext,
  call: OperationCall,
  work: (unit: Unit) => Promise<OperationReply>,
): Promise<OperationReply> => mutate(database, request, call, { role: { service: 'analytics' }, work });

/**
 * A change that answers the dashboard. Where that is long, the key of the request keeps only which dashboard it was:
 * its repetition is answered with the dashboard as it is by then.
 */
async function answered(
  deps: AnalyticsDeps,
  request: RequestContext,
  call: OperationCall,
  viewer: Viewer,
  work: (unit: Unit) => Promise<OperationReply>,
): Promise<OperationReply> {
  const reply = await change(deps, request, call, work);
  const kept = keptIn(reply);
  if (!kept) return reply;
  const row = await deps.database.shared('analytics', viewer.tenantId, (tx) =>
    visibleDashboard(tx, viewer, kept.dashboardId, kept.keptVersion),
  );
  const { headers, body } = replyOf(row, viewer);
  return { ...reply, headers: { ...reply.headers, ...headers }, body };
}

/** Stored under the key instead of a long answer. */
interface Kept {
  readonly dashboardId: string;
  readonly keptVersion: Version;
}

const KEPT_MAX_BYTES = 100;

/** Of a stored reply what was kept of it; null: all of it. */
function keptIn({ body }: OperationReply): Kept | null {
  if (!Buffer.isBuffer(body) || body.length > KEPT_MAX_BYTES) return null;
  const { dashboardId, keptVersion }: Partial<Kept> = JSON.parse(body.toString());
  return dashboardId !== undefined && keptVersion !== undefined ? { dashboardId, keptVersion } : null;
}

/** The draft of a dashboard that the viewer may change, locked. */
async function lockedDashboard(tx: Tx, viewer: Viewer, dashboardId: string): Promise<FullDashboardRow> {
  const id = dashboardId.toLowerCase();
  const locking = tx.query(lockDashboardSql(viewer.tenantId, id));
  const draft: Version = 'draft';
  const row = await tx.first<FullDashboardRow>(findDashboardSql(viewer, id, draft));
  await locking;
  return changeable(row);
}

/** The dashboard; 404 and 403 for those who may not change it. */
export function changeable(row: FullDashboardRow | null): FullDashboardRow {
  if (!row || (row.reach === 'view' && row.publishedRevision === null)) throw dashboardNotFound();
  if (row.reach === 'view') throw accessDenied('You may look at this dashboard, but you may not change it.');
  return row;
}

export function refuseSharing({ reach }: FullDashboardRow, content: Content, former: Content): void {
  const sharing = ({ visibility, sharedWith }: Content): string => JSON.stringify([visibility, sharedWith]);
  if (reach !== 'own' && sharing(content) !== sharing(former))
    throw accessDenied('Only its owner decides who reaches a dashboard.');
}

export function refuseDeletion({ reach }: FullDashboardRow): void {
  if (reach !== 'own') throw accessDenied('Only its owner deletes a dashboard.');
}

/** All that is published of a dashboard: who may see it belongs to both of its versions. */
const shown = ({ visibility: _, sharedWith: __, ...content }: Content): string => JSON.stringify(content);

const accessDenied = (message: string): PlatformError => new PlatformError('RECORD_ACCESS_DENIED', message);

const keyOf = ({ dashboardId }: FullDashboardRow, { tenantId }: Viewer): DashboardKey => ({ tenantId, dashboardId });

export const contentOfRow = ({
  name,
  description,
  visibility,
  sharedWith,
  timezone,
  content,
}: FullDashboardRow): Content => ({
  name,
  description,
  visibility,
  sharedWith,
  timezone,
  filters: content.filters,
  widgets: content.widgets,
});

function replyOf(row: FullDashboardRow, viewer: Viewer): OperationReply {
  const shown = presentDashboard(row, viewer);
  const body = Buffer.from(JSON.stringify(shown));
  const reply = { headers: { ETag: etagOf(shown) }, body };
  if (body.length <= LIMITS.dashboard_answer_kept_max_bytes || row.version === null) return reply;
  const kept: Kept = { dashboardId: row.dashboardId, keptVersion: row.version };
  return { ...reply, kept };
}

/** Other services' checks of a body. Before the transaction, which holds a connection. */
interface Answers {
  /** Shares with those whom the caller cannot name. */
  readonly unknown: ReadonlySet<string>;
  readonly catalogs: Catalogs;
}

/** A failure is for the work that awaits the answers: a request that was answered before gets that answer again. */
export function askedOf(
  deps: AnalyticsDeps,
  viewer: Viewer,
  { sharedWith = [], widgets = [] }: Pick<UpdateBody, 'sharedWith' | 'widgets'>,
): Promise<Answers> {
  const asked = Promise.all([unknownShares(deps, viewer, sharedWith), catalogsFor(widgets, deps.catalogOf)]).then(
    ([unknown, catalogs]) => ({ unknown, catalogs }),
  );
  asked.catch(() => {});
  return asked;
}

/** Shares of a body with those whom the caller cannot name. */
async function unknownShares(
  deps: AnalyticsDeps,
  { tenantId, userId }: Viewer,
  sharedWith: readonly DashboardShare[],
): Promise<ReadonlySet<string>> {
  if (sharedWith.length === 0) return new Set();
  const principals = sharedWith.map(({ principalType, principalId }) => ({
    principalType,
    principalId: principalType === 'user' ? principalId.toLowerCase() : principalId,
  }));
  const places = await deps.unknownPrincipals({ tenantId, userId, principals });
  return new Set(places.flatMap((place) => principals[place] ?? []).map(shareName));
}

const shareName = ({
  principalType,
  principalId,
}: Pick<Content['sharedWith'][number], 'principalType' | 'principalId'>) => `${principalType} ${principalId}`;

/** 422 with everything that is wrong. Shares and queries that are there may stay as they are. */
export function refuseContent(content: Content, former: Content | null, { unknown, catalogs }: Answers): void {
  const problems = new ViolationList<ViolationCode>();
  contentProblems(content, (pointer, message) => problems.add(() => violation(pointer, 'DASHBOARD_INVALID', message)));
  queryProblems(content.widgets, former?.widgets ?? [], catalogs, (pointer, message) =>
    problems.add(() => violation(pointer, 'WIDGET_QUERY_INVALID', message)),
  );
  const known = new Set(former?.sharedWith.map(shareName));
  content.sharedWith.forEach((share, at) => {
    const name = shareName(share);
    if (unknown.has(name) && !known.has(name))
      problems.add(() => violation(`/sharedWith/${at}/principalId`, 'REFERENCE_NOT_FOUND', unknownPrincipal(share)));
  });
  refuseProblems(problems);
  refuseSize(content);
}

const unknownPrincipal = ({ principalType, principalId }: DashboardShare): string =>
  principalType === 'user' && !isUuid(principalId)
    ? 'A user is named by their id, a UUID, not by their username.'
    : `There is no such ${principalType}.`;

function refuseTooMany(count: number, max: number, whose: string): void {
  if (count >= max)
    throw new PlatformError('TOO_MANY_ITEMS', `${whose} may have at most ${max} dashboards.`, { details: { max } });
}

/** Audit entry of a change: values of short properties, and the names of other changed ones. */
function changesOf(before: Content | null, after: Content, revision: number): Record<string, unknown> {
  const changes: Record<string, unknown> = { revision: { from: before ? revision - 1 : null, to: revision } };
  for (const name of ['name', 'visibility', 'sharedWith', 'timezone'] as const)
    if (JSON.stringify(before?.[name]) !== JSON.stringify(after[name]))
      changes[name] = { from: before?.[name] ?? null, to: after[name] };
  for (const name of ['description', 'filters', 'widgets'] as const)
    if (before && JSON.stringify(before[name]) !== JSON.stringify(after[name])) changes[name] = { changed: true };
  return changes;
}
