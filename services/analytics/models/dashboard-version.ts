import { DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import type { DASHBOARD_VERSIONS, DashboardFilter, Widget } from '../../../contracts/analytics.ts';
import { sequelize } from '../../../mixins/models/sequelize.ts';

/** Content of a dashboard, apart from its name. */
export interface DashboardContent {
  readonly filters: readonly DashboardFilter[];
  readonly widgets: readonly Widget[];
}

/** The draft of a dashboard, or what was published of it. */
export class DashboardVersionModel extends Model<
  InferAttributes<DashboardVersionModel>,
  InferCreationAttributes<DashboardVersionModel>
> {
  declare tenantId: string;
  declare dashboardId: string;
  declare version: (typeof DASHBOARD_VERSIONS)[number];
  declare name: string;
  declare description: string | null;
  declare timezone: string | null;
  declare widgetCount: number;
  declare content: DashboardContent;
}

DashboardVersionModel.init(
  {
    tenantId: { type: DataTypes.UUID, primaryKey: true },
    dashboardId: { type: DataTypes.UUID, primaryKey: true },
    version: { type: DataTypes.TEXT, primaryKey: true },
    name: DataTypes.TEXT,
    description: DataTypes.TEXT,
    timezone: DataTypes.TEXT,
    widgetCount: DataTypes.INTEGER,
    content: DataTypes.JSON,
  },
  { sequelize, schema: 'analytics', tableName: 'dashboard_versions' },
);
