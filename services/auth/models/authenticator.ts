import { type CreationOptional, DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import { sequelize, type Timestamp } from '../../../mixins/models/sequelize.ts';

/** The authenticator app of a user: the sealed secret, and the last time step that was used. */
export class AuthenticatorModel extends Model<
  InferAttributes<AuthenticatorModel>,
  InferCreationAttributes<AuthenticatorModel>
> {
  declare tenantId: string;
  declare userId: string;
  declare sealedSecret: Buffer;
  declare lastStep: number;
  declare createdAt: CreationOptional<Timestamp>;
}

AuthenticatorModel.init(
  {
    tenantId: { type: DataTypes.UUID, primaryKey: true },
    userId: { type: DataTypes.UUID, primaryKey: true },
    sealedSecret: DataTypes.BLOB,
    lastStep: DataTypes.BIGINT,
    createdAt: DataTypes.TEXT,
  },
  { sequelize, schema: 'auth', tableName: 'authenticators' },
);
