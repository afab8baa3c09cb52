import { type CreationOptional, DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import type { VISIBILITIES } from '../../../contracts/analytics.ts';
import { sequelize, type Timestamp } from '../../../mixins/models/sequelize.ts';

/** A dashboard without what it shows. Statements of their own read and lock it. */
export class DashboardModel extends Model<InferAttributes<DashboardModel>, InferCreationAttributes<DashboardModel>> {
  declare tenantId: string;
  declare dashboardId: string;
  declare ownerId: string | null;
  declare apiName: CreationOptional<string | null>;
  declare visibility: (typeof VISIBILITIES)[number];
  declare revision: CreationOptional<number>;
  declare draftRevision: CreationOptional<number | null>;
  declare publishedRevision: CreationOptional<number | null>;
  declare publishedAt: CreationOptional<Timestamp | null>;
  declare publishedById: CreationOptional<string | null>;
  declare createdAt: CreationOptional<Timestamp>;
  declare createdById: string | null;
  declare updatedAt: CreationOptional<Timestamp>;
  declare updatedById: string | null;
  declare deletedAt: CreationOptional<Timestamp | null>;
  declare deletedById: CreationOptional<string | null>;
}

DashboardModel.init(
  {
    tenantId: { type: DataTypes.UUID, primaryKey: true },
    dashboardId: { type: DataTypes.UUID, primaryKey: true },
    ownerId: DataTypes.UUID,
    apiName: DataTypes.TEXT,
    visibility: DataTypes.TEXT,
    revision: DataTypes.INTEGER,
    draftRevision: DataTypes.INTEGER,
    publishedRevision: DataTypes.INTEGER,
    publishedAt: DataTypes.TEXT,
    publishedById: DataTypes.UUID,
    createdAt: DataTypes.TEXT,
    createdById: DataTypes.UUID,
    updatedAt: DataTypes.TEXT,
    updatedById: DataTypes.UUID,
    deletedAt: DataTypes.TEXT,
    deletedById: DataTypes.UUID,
  },
  { sequelize, schema: 'analytics', tableName: 'dashboards' },
);
