import { type CreationOptional, DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import { sequelize, type Timestamp } from '../../../mixins/models/sequelize.ts';

/** One person's decision about one approval. */
export class DecisionModel extends Model<InferAttributes<DecisionModel>, InferCreationAttributes<DecisionModel>> {
  declare tenantId: string;
  declare approvalId: string;
  declare userId: string;
  declare decision: 'approve' | 'reject';
  declare comment: string | null;
  declare decidedAt: CreationOptional<Timestamp>;
}

DecisionModel.init(
  {
    tenantId: { type: DataTypes.UUID, primaryKey: true },
    approvalId: { type: DataTypes.UUID, primaryKey: true },
    userId: { type: DataTypes.UUID, primaryKey: true },
    decision: DataTypes.TEXT,
    comment: DataTypes.TEXT,
    decidedAt: DataTypes.TEXT,
  },
  { sequelize, schema: 'agent', tableName: 'decisions' },
);
