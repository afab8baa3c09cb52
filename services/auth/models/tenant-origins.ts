import { DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import { sequelize } from '../../../mixins/models/sequelize.ts';

/** Browser origins and metadata documents that a tenant's active clients name, as of a version of its configuration. */
export class TenantOriginsModel extends Model<
  InferAttributes<TenantOriginsModel>,
  InferCreationAttributes<TenantOriginsModel>
> {
  declare tenantId: string;
  declare metadataVersion: number;
  declare origins: string[];
  declare documents: string[];
}

TenantOriginsModel.init(
  {
    tenantId: { type: DataTypes.UUID, primaryKey: true },
    metadataVersion: DataTypes.INTEGER,
    origins: DataTypes.ARRAY(DataTypes.TEXT),
    documents: DataTypes.ARRAY(DataTypes.TEXT),
  },
  { sequelize, schema: 'auth', tableName: 'tenant_origins' },
);
