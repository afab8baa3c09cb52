/**
 * Checks whether a user could change dashboards by an operation themselves, for services that let people decide about what
 * is asked for in the name of others: by the rules of the execution, without revisions. Source:
 * docs/reference/agents.md#approvals.
 */
import { Value } from 'typebox/value';
import { type AnalyticsActions, CreateBody, UpdateBody } from '../../../contracts/analytics.ts';
import { operationRow } from '../../../contracts/operations.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { AnalyticsDeps } from '../deps.ts';
import { viewerOf } from '../viewer.ts';
import { askedOf, changeable, contentOfRow, refuseContent, refuseDeletion, refuseSharing } from './change.ts';
import { contentOf } from './content.ts';
import { type FullDashboardRow, findDashboardSql } from './read.sql.ts';

type Check = AnalyticsActions['analytics.access.check'];

export async function checkAccess(deps: AnalyticsDeps, question: Check['params']): Promise<Check['result']> {
  try {
    await requireAccess(deps, question);
    return { refusal: null };
  } catch (error) {
    if (error instanceof PlatformError && error.status < 500) return { refusal: error.toWire() };
    throw error;
  }
}

async function requireAccess(
  deps: AnalyticsDeps,
  { asker, operationId, dashboardId, body }: Check['params'],
): Promise<void> {
  const viewer = await viewerOf(deps, { ...asker, scopes: [] });
  const change = operationRow(operationId)?.changes;
  if (change?.kind !== 'dashboard') throw new Error(`${operationId} changes no dashboards.`);
  if (change.needs === 'create') {
    if (!Value.Check(CreateBody, body)) throw bodyMissing();
    return refuseContent(contentOf(body, null), null, await askedOf(deps, viewer, body));
  }
  const find = findDashboardSql(viewer, (dashboardId ?? '').toLowerCase(), 'draft');
  const row = changeable(
    await deps.database.shared('analytics', viewer.tenantId, (tx) => tx.first<FullDashboardRow>(find)),
  );
  if (change.needs === 'delete') return refuseDeletion(row);
  if (change.needs === 'publish') return;
  if (!Value.Check(UpdateBody, body)) throw bodyMissing();
  const former = contentOfRow(row);
  const content = contentOf(body, former);
  refuseSharing(row, content, former);
  refuseContent(content, former, await askedOf(deps, viewer, body));
}

const bodyMissing = (): PlatformError =>
  new PlatformError('RECORD_ACCESS_DENIED', 'Approval cannot be requested: the request has no complete dashboard.');
