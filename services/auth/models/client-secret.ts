import { type CreationOptional, DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import { sequelize, type Timestamp } from '../../../mixins/models/sequelize.ts';

/** The hash of an external client's secret. The secret itself is shown once, when it is made. */
export class ClientSecretModel extends Model<
  InferAttributes<ClientSecretModel>,
  InferCreationAttributes<ClientSecretModel>
> {
  declare tenantId: string;
  declare apiName: string;
  declare secretHash: Buffer;
  declare updatedAt: CreationOptional<Timestamp>;
}

ClientSecretModel.init(
  {
    tenantId: { type: DataTypes.UUID, primaryKey: true },
    apiName: { type: DataTypes.TEXT, primaryKey: true },
    secretHash: DataTypes.BLOB,
    updatedAt: DataTypes.TEXT,
  },
  { sequelize, schema: 'auth', tableName: 'client_secrets' },
);
