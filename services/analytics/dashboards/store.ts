/** Dashboards as they are written, in the transaction of a mutation and as the role of this service. */
import type { Tx } from '../../../mixins/database/database.ts';
import { NOW, on } from '../../../mixins/models/sequelize.ts';
import { DashboardModel } from '../models/dashboard.ts';
import { DashboardShareModel } from '../models/dashboard-share.ts';
import { DashboardVersionModel } from '../models/dashboard-version.ts';
import type { Content } from './content.ts';
import { publishDraftSql } from './publish.sql.ts';

/** A dashboard by its tenant and id. */
export interface DashboardKey {
  readonly tenantId: string;
  readonly dashboardId: string;
}

type Changes = Partial<Omit<DashboardModel, keyof DashboardKey>>;

export async function insertDashboard(
  tx: Tx,
  key: DashboardKey,
  content: Content,
  { userId }: { readonly userId: string | null },
): Promise<void> {
  await DashboardModel.create(
    { ...key, ownerId: userId, visibility: content.visibility, createdById: userId, updatedById: userId },
    on(tx),
  );
  await DashboardVersionModel.create({ ...key, version: 'draft', ...columnsOf(content) }, on(tx));
  await insertShares(tx, key, content);
}

/** Replaces the draft, which was `former`, and the shares; the caller has locked the dashboard. */
export async function updateDraft(
  tx: Tx,
  key: DashboardKey,
  content: Content,
  former: Content | null = null,
): Promise<void> {
  const { content: long, ...short } = columnsOf(content);
  // Unset parts are not stored again.
  const isSame = content.filters === former?.filters && content.widgets === former.widgets;
  const columns = isSame ? short : { ...short, content: long };
  await DashboardVersionModel.update(columns, { where: { ...key, version: 'draft' }, ...on(tx) });
  await DashboardShareModel.destroy({ where: { ...key }, ...on(tx) });
  await insertShares(tx, key, content);
}

export async function updateDashboard(
  tx: Tx,
  key: DashboardKey,
  changes: Changes,
  { userId }: { readonly userId: string | null },
): Promise<void> {
  await DashboardModel.update({ ...changes, updatedAt: NOW, updatedById: userId }, { where: { ...key }, ...on(tx) });
}

/** Makes the draft the published version. */
export async function publishDraft(tx: Tx, { tenantId, dashboardId }: DashboardKey): Promise<void> {
  await tx.query(publishDraftSql(tenantId, dashboardId));
}

const columnsOf = ({ name, description, timezone, filters, widgets }: Content) => ({
  name,
  description,
  timezone,
  widgetCount: widgets.length,
  content: { filters, widgets },
});

async function insertShares(tx: Tx, key: DashboardKey, { sharedWith }: Content): Promise<void> {
  if (sharedWith.length === 0) return;
  await DashboardShareModel.bulkCreate(
    sharedWith.map((share, position) => ({ ...key, ...share, position })),
    on(tx),
  );
}
