/** Dashboards as the API shows them. */
import { hash } from 'node:crypto';
import type { OperationOutput } from '../../../contracts/operations.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import type { Viewer } from '../viewer.ts';
import type { DashboardRow, FullDashboardRow } from './read.sql.ts';

type Summary = Omit<OperationOutput<'analytics.dashboards.list'>['records'][number], 'widgetCount'>;

const time = (text: string): string => formatTimestamp(new Date(text));

/** Viewers do not see changes of the draft since it was published. */
const changesOf = (row: DashboardRow): Pick<Summary, 'state' | 'revision' | 'updatedAt' | 'updatedById'> =>
  row.reach === 'view' && row.publishedRevision !== null && row.publishedAt !== null
    ? {
        state: 'published',
        revision: row.publishedRevision,
        updatedAt: time(row.publishedAt),
        updatedById: row.publishedById,
      }
    : {
        state: stateOf(row),
        revision: row.revision,
        updatedAt: time(row.updatedAt),
        updatedById: row.updatedById,
      };

function stateOf({ draftRevision, publishedRevision }: DashboardRow): Summary['state'] {
  if (publishedRevision === null) return 'draft';
  return draftRevision <= publishedRevision ? 'published' : 'modified';
}

function summaryOf(row: DashboardRow, viewer: Viewer): Summary {
  const owns = viewer.mayChange && row.reach === 'own';
  const edits = viewer.mayChange && row.reach !== 'view';
  return {
    dashboardId: row.dashboardId,
    name: row.name,
    description: row.description,
    ownerId: row.ownerId,
    visibility: row.visibility,
    sharedWith: row.sharedWith,
    version: row.version,
    ...changesOf(row),
    publishedRevision: row.publishedRevision,
    publishedAt: row.publishedAt === null ? null : time(row.publishedAt),
    publishedById: row.publishedById,
    timezone: row.timezone,
    capabilities: { editable: edits, publishable: edits, deletable: owns, shareable: owns },
    createdAt: time(row.createdAt),
    createdById: row.createdById,
  };
}

/** An item of the list. */
export const presentSummary = (
  row: DashboardRow,
  viewer: Viewer,
): OperationOutput<'analytics.dashboards.list'>['records'][number] => ({
  ...summaryOf(row, viewer),
  widgetCount: row.widgetCount,
});

export const presentDashboard = (
  row: FullDashboardRow,
  viewer: Viewer,
): OperationOutput<'analytics.dashboards.get'> => ({
  ...summaryOf(row, viewer),
  filters: row.content.filters,
  widgets: row.content.widgets,
});

/**
 * Of an answer, for If-Match and If-None-Match: the revision, and what differs between viewers at the same revision.
 * For who may do everything with the dashboard that is nothing.
 */
export function etagOf({
  revision,
  capabilities,
  visibility,
  sharedWith,
}: OperationOutput<'analytics.dashboards.get'>): string {
  if (Object.values(capabilities).every(Boolean)) return `"r${revision}"`;
  const seen = hash('sha256', JSON.stringify([capabilities, visibility, sharedWith]), 'base64url');
  return `"r${revision}-${seen.slice(0, 12)}"`;
}

/** The revision of the version shown: a published one is the same for all viewers. */
export const revisionShown = ({ version, revision, publishedRevision }: DashboardRow): number =>
  version === 'published' ? (publishedRevision ?? revision) : revision;
