import { type CreationOptional, DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import { sequelize, type Timestamp } from '../../../mixins/models/sequelize.ts';

/** A passkey: the public half of a key pair whose private half never leaves the person's device. */
export class PasskeyModel extends Model<InferAttributes<PasskeyModel>, InferCreationAttributes<PasskeyModel>> {
  declare tenantId: string;
  /** The credential id, base64url. */
  declare id: string;
  declare userId: string;
  declare name: string;
  declare publicKey: Buffer;
  declare counter: number;
  declare transports: string[];
  declare backupEligible: boolean;
  declare backedUp: boolean;
  declare createdAt: CreationOptional<Timestamp>;
  declare lastUsedAt: CreationOptional<Timestamp | null>;
}

PasskeyModel.init(
  {
    tenantId: { type: DataTypes.UUID, primaryKey: true },
    id: { type: DataTypes.TEXT, primaryKey: true },
    userId: DataTypes.UUID,
    name: DataTypes.TEXT,
    publicKey: DataTypes.BLOB,
    counter: DataTypes.BIGINT,
    transports: DataTypes.ARRAY(DataTypes.TEXT),
    backupEligible: DataTypes.BOOLEAN,
    backedUp: DataTypes.BOOLEAN,
    createdAt: DataTypes.TEXT,
    lastUsedAt: DataTypes.TEXT,
  },
  { sequelize, schema: 'auth', tableName: 'passkeys' },
);
