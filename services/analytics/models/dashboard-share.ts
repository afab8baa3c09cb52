import { DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import type { DashboardShare } from '../../../contracts/analytics.ts';
import { sequelize } from '../../../mixins/models/sequelize.ts';

/** To whom a dashboard is shared. */
export class DashboardShareModel extends Model<
  InferAttributes<DashboardShareModel>,
  InferCreationAttributes<DashboardShareModel>
> {
  declare tenantId: string;
  declare dashboardId: string;
  declare principalType: DashboardShare['principalType'];
  declare principalId: string;
  declare access: DashboardShare['access'];
  declare position: number;
}

DashboardShareModel.init(
  {
    tenantId: { type: DataTypes.UUID, primaryKey: true },
    dashboardId: { type: DataTypes.UUID, primaryKey: true },
    principalType: { type: DataTypes.TEXT, primaryKey: true },
    principalId: { type: DataTypes.TEXT, primaryKey: true },
    access: DataTypes.TEXT,
    position: DataTypes.INTEGER,
  },
  { sequelize, schema: 'analytics', tableName: 'dashboard_shares' },
);
