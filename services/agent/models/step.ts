import { type CreationOptional, DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import { sequelize, type Timestamp } from '../../../mixins/models/sequelize.ts';

/** A call under a run. Statements of their own store it together with what it takes from the budget. */
export class StepModel extends Model<InferAttributes<StepModel>, InferCreationAttributes<StepModel>> {
  declare tenantId: string;
  declare stepId: string;
  declare runId: string;
  declare at: CreationOptional<Timestamp>;
  declare operationId: string;
  declare method: string;
  declare path: string;
  declare mutation: boolean;
  declare cost: number;
  declare requestId: string;
  declare approvalId: string | null;
  declare status: number | null;
}

StepModel.init(
  {
    tenantId: { type: DataTypes.UUID, primaryKey: true },
    stepId: { type: DataTypes.UUID, primaryKey: true },
    runId: DataTypes.UUID,
    at: DataTypes.TEXT,
    operationId: DataTypes.TEXT,
    method: DataTypes.TEXT,
    path: DataTypes.TEXT,
    mutation: DataTypes.BOOLEAN,
    cost: DataTypes.INTEGER,
    requestId: DataTypes.TEXT,
    approvalId: DataTypes.UUID,
    status: DataTypes.SMALLINT,
  },
  { sequelize, schema: 'agent', tableName: 'steps' },
);
