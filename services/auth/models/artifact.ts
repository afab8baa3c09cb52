import { type CreationOptional, DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import { sequelize, type Timestamp } from '../../../mixins/models/sequelize.ts';

/** A short-lived artifact of the OAuth protocol: a code, a refresh token, a browser session, an interaction. */
export class ArtifactModel extends Model<InferAttributes<ArtifactModel>, InferCreationAttributes<ArtifactModel>> {
  declare model: string;
  declare id: string;
  declare payload: Record<string, unknown>;
  declare grantId: string | null;
  declare accountId: string | null;
  declare uid: string | null;
  declare userCode: string | null;
  declare consumedAt: CreationOptional<Timestamp | null>;
  declare expiresAt: Timestamp;
}

ArtifactModel.init(
  {
    model: { type: DataTypes.TEXT, primaryKey: true },
    id: { type: DataTypes.TEXT, primaryKey: true },
    payload: DataTypes.JSONB,
    grantId: DataTypes.TEXT,
    accountId: DataTypes.TEXT,
    uid: DataTypes.TEXT,
    userCode: DataTypes.TEXT,
    consumedAt: DataTypes.TEXT,
    expiresAt: DataTypes.TEXT,
  },
  { sequelize, schema: 'auth', tableName: 'artifacts' },
);
