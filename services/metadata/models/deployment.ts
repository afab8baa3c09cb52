import { type CreationOptional, DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import type { DeploymentError, DeploymentStatus } from '../../../contracts/metadata.ts';
import { sequelize } from '../../../mixins/models/sequelize.ts';

/** A deployment or a recorded validation. Statements of their own store, claim and finish it, and read its plan. */
export class DeploymentModel extends Model<InferAttributes<DeploymentModel>, InferCreationAttributes<DeploymentModel>> {
  declare tenantId: string;
  declare deploymentId: string;
  declare queueNumber: CreationOptional<number>;
  declare status: CreationOptional<DeploymentStatus>;
  declare kind: 'deploy' | 'validation' | 'quickDeploy' | 'rollback';
  declare checkOnly: boolean;
  declare allowDestructiveChanges: boolean;
  declare baseMetadataVersion: number | null;
  declare expectedPlanHash: string | null;
  declare manifestHash: string;
  declare createdAt: CreationOptional<string>;
  declare startedAt: CreationOptional<string | null>;
  declare finishedAt: CreationOptional<string | null>;
  declare createdByUserId: string;
  declare createdByDisplayName: string;
  declare createdByClientId: string;
  declare createdByAgentRunId: string | null;
  declare createdByPermissions: string[];
  declare requestId: string;
  declare idempotencyKey: string;
  declare stage: CreationOptional<'queue' | 'validate' | 'apply' | 'done'>;
  declare done: CreationOptional<number>;
  declare total: CreationOptional<number>;
  declare planHash: CreationOptional<string | null>;
  declare metadataVersionBefore: CreationOptional<number | null>;
  declare metadataVersionAfter: CreationOptional<number | null>;
  declare error: CreationOptional<DeploymentError | null>;
  declare cancelRequested: CreationOptional<boolean>;
  declare canceledById: CreationOptional<string | null>;
  declare cancelReason: CreationOptional<string | null>;
}

DeploymentModel.init(
  {
    tenantId: { type: DataTypes.UUID, primaryKey: true },
    deploymentId: { type: DataTypes.UUID, primaryKey: true },
    queueNumber: DataTypes.BIGINT,
    status: DataTypes.TEXT,
    kind: DataTypes.TEXT,
    checkOnly: DataTypes.BOOLEAN,
    allowDestructiveChanges: DataTypes.BOOLEAN,
    baseMetadataVersion: DataTypes.INTEGER,
    expectedPlanHash: DataTypes.TEXT,
    manifestHash: DataTypes.TEXT,
    createdAt: DataTypes.TEXT,
    startedAt: DataTypes.TEXT,
    finishedAt: DataTypes.TEXT,
    createdByUserId: DataTypes.UUID,
    createdByDisplayName: DataTypes.TEXT,
    createdByClientId: DataTypes.TEXT,
    createdByAgentRunId: DataTypes.UUID,
    createdByPermissions: DataTypes.ARRAY(DataTypes.TEXT),
    requestId: DataTypes.TEXT,
    idempotencyKey: DataTypes.TEXT,
    stage: DataTypes.TEXT,
    done: DataTypes.INTEGER,
    total: DataTypes.INTEGER,
    planHash: DataTypes.TEXT,
    metadataVersionBefore: DataTypes.INTEGER,
    metadataVersionAfter: DataTypes.INTEGER,
    error: DataTypes.JSONB,
    cancelRequested: DataTypes.BOOLEAN,
    canceledById: DataTypes.UUID,
    cancelReason: DataTypes.TEXT,
  },
  { sequelize, schema: 'metadata', tableName: 'deployments' },
);
