import { DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import { sequelize } from '../../../mixins/models/sequelize.ts';

/** The hash of a single-use code that takes the place of a lost second factor. */
export class RecoveryCodeModel extends Model<
  InferAttributes<RecoveryCodeModel>,
  InferCreationAttributes<RecoveryCodeModel>
> {
  declare tenantId: string;
  declare userId: string;
  declare codeHash: Buffer;
}

RecoveryCodeModel.init(
  {
    tenantId: { type: DataTypes.UUID, primaryKey: true },
    userId: { type: DataTypes.UUID, primaryKey: true },
    codeHash: { type: DataTypes.BLOB, primaryKey: true },
  },
  { sequelize, schema: 'auth', tableName: 'recovery_codes' },
);
