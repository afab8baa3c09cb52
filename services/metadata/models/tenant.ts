import { type CreationOptional, DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import type { RateLimitOverrides } from '../../../lib/schema/snapshot.ts';
import { sequelize } from '../../../mixins/models/sequelize.ts';

/**
 * A tenant of the platform. The table has no row-level security: a tenant is found by it before any tenant is known.
 */
export class TenantModel extends Model<InferAttributes<TenantModel>, InferCreationAttributes<TenantModel>> {
  declare id: string;
  declare key: string;
  declare name: string;
  declare region: string;
  declare edition: string;
  declare sandbox: boolean;
  declare locale: string;
  declare timezone: string;
  declare currency: string;
  declare rateLimits: RateLimitOverrides;
  declare operatorLimits: CreationOptional<RateLimitOverrides>;
  /** The parameters of its creation. */
  declare createdAs: object;
  declare templatePending: boolean;
  declare suspended: CreationOptional<boolean>;
  declare erasingSince: CreationOptional<Date | null>;
  declare metadataVersion: CreationOptional<number>;
  declare indexGeneration: number;
}

TenantModel.init(
  {
    id: { type: DataTypes.UUID, primaryKey: true },
    key: DataTypes.TEXT,
    name: DataTypes.TEXT,
    region: DataTypes.TEXT,
    edition: DataTypes.TEXT,
    sandbox: DataTypes.BOOLEAN,
    locale: DataTypes.TEXT,
    timezone: DataTypes.TEXT,
    currency: DataTypes.TEXT,
    rateLimits: DataTypes.JSONB,
    operatorLimits: DataTypes.JSONB,
    createdAs: DataTypes.JSONB,
    templatePending: DataTypes.BOOLEAN,
    suspended: DataTypes.BOOLEAN,
    erasingSince: DataTypes.DATE,
    metadataVersion: DataTypes.INTEGER,
    indexGeneration: DataTypes.INTEGER,
  },
  { sequelize, schema: 'metadata', tableName: 'tenants' },
);
