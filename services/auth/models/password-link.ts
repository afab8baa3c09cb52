import { DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import { sequelize, type Timestamp } from '../../../mixins/models/sequelize.ts';

/** A single-use link with which a user sets a password. Only the hash of its token is stored. */
export class PasswordLinkModel extends Model<
  InferAttributes<PasswordLinkModel>,
  InferCreationAttributes<PasswordLinkModel>
> {
  declare tenantId: string;
  declare tokenHash: Buffer;
  declare userId: string;
  declare expiresAt: Timestamp;
}

PasswordLinkModel.init(
  {
    tenantId: { type: DataTypes.UUID, primaryKey: true },
    tokenHash: { type: DataTypes.BLOB, primaryKey: true },
    userId: DataTypes.UUID,
    expiresAt: DataTypes.TEXT,
  },
  { sequelize, schema: 'auth', tableName: 'password_links' },
);
