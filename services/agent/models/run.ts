import { type CreationOptional, DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import type { AgentRun, RunOutcome } from '../../../contracts/agent.ts';
import { sequelize, type Timestamp } from '../../../mixins/models/sequelize.ts';

/**
 * A run of an agent. What it is at a moment, its time and its approvals considered, is asked by statements of their
 * own.
 */
export class RunModel extends Model<InferAttributes<RunModel>, InferCreationAttributes<RunModel>> {
  declare tenantId: string;
  declare runId: string;
  declare status: CreationOptional<'RUNNING' | 'COMPLETED' | 'FAILED' | 'CANCELED' | 'EXPIRED'>;
  declare agentKey: string;
  declare agentVersion: string | null;
  declare goal: string;
  declare dryRun: boolean;
  declare userId: string;
  declare clientId: string;
  declare grantId: string;
  declare context: AgentRun['context'];
  declare plan: AgentRun['plan'];
  declare maxCost: number;
  declare maxMutations: number;
  declare maxRecords: number;
  declare cost: CreationOptional<number>;
  declare requests: CreationOptional<number>;
  declare mutations: CreationOptional<number>;
  declare recordsChanged: CreationOptional<number>;
  declare createdAt: CreationOptional<Timestamp>;
  declare expiresAt: Timestamp;
  declare endedAt: CreationOptional<Timestamp | null>;
  declare outcome: CreationOptional<RunOutcome | null>;
  declare summary: CreationOptional<string | null>;
  declare output: CreationOptional<object | null>;
  declare modelUsage: CreationOptional<AgentRun['modelUsage']>;
}

RunModel.init(
  {
    tenantId: { type: DataTypes.UUID, primaryKey: true },
    runId: { type: DataTypes.UUID, primaryKey: true },
    status: DataTypes.TEXT,
    agentKey: DataTypes.TEXT,
    agentVersion: DataTypes.TEXT,
    goal: DataTypes.TEXT,
    dryRun: DataTypes.BOOLEAN,
    userId: DataTypes.UUID,
    clientId: DataTypes.TEXT,
    grantId: DataTypes.TEXT,
    context: DataTypes.JSONB,
    plan: DataTypes.JSON,
    maxCost: DataTypes.INTEGER,
    maxMutations: DataTypes.INTEGER,
    maxRecords: DataTypes.INTEGER,
    cost: DataTypes.INTEGER,
    requests: DataTypes.INTEGER,
    mutations: DataTypes.INTEGER,
    recordsChanged: DataTypes.INTEGER,
    createdAt: DataTypes.TEXT,
    expiresAt: DataTypes.TEXT,
    endedAt: DataTypes.TEXT,
    outcome: DataTypes.TEXT,
    summary: DataTypes.TEXT,
    output: DataTypes.JSON,
    modelUsage: DataTypes.JSONB,
  },
  { sequelize, schema: 'agent', tableName: 'runs' },
);
