import { type CreationOptional, DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import { sequelize, type Timestamp } from '../../../mixins/models/sequelize.ts';

/** How a user signs in. A username names one user of a tenant, without regard to case. */
export class CredentialModel extends Model<InferAttributes<CredentialModel>, InferCreationAttributes<CredentialModel>> {
  declare tenantId: string;
  declare userId: string;
  declare username: string;
  declare email: string;
  declare passwordHash: CreationOptional<string | null>;
  declare active: boolean;
  declare createdAt: CreationOptional<Timestamp>;
  declare updatedAt: CreationOptional<Timestamp>;
  declare lastSignInAt: CreationOptional<Timestamp | null>;
  declare pendingEmail: CreationOptional<string | null>;
  declare sessionGeneration: CreationOptional<number>;
}

CredentialModel.init(
  {
    tenantId: { type: DataTypes.UUID, primaryKey: true },
    userId: { type: DataTypes.UUID, primaryKey: true },
    username: DataTypes.TEXT,
    email: DataTypes.TEXT,
    passwordHash: DataTypes.TEXT,
    active: DataTypes.BOOLEAN,
    createdAt: DataTypes.TEXT,
    updatedAt: DataTypes.TEXT,
    lastSignInAt: DataTypes.TEXT,
    pendingEmail: DataTypes.TEXT,
    sessionGeneration: DataTypes.INTEGER,
  },
  { sequelize, schema: 'auth', tableName: 'credentials' },
);
