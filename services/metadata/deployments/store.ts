/** Deployments that are accepted and looked at; workers take them with lease.ts. */

import { Op } from 'sequelize';
import type { DeploymentStatus } from '../../../contracts/metadata.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import { on } from '../../../mixins/models/sequelize.ts';
import { DeploymentModel } from '../models/deployment.ts';
import type { Package } from '../project/project.ts';

const OPEN: readonly DeploymentStatus[] = ['QUEUED', 'VALIDATING', 'APPLYING', 'CANCELING'];

const SUMMARY = [
  'deploymentId',
  'queueNumber',
  'status',
  'kind',
  'checkOnly',
  'allowDestructiveChanges',
  'manifestHash',
  'createdAt',
  'startedAt',
  'finishedAt',
  'createdByUserId',
  'createdByDisplayName',
  'createdByClientId',
  'createdByAgentRunId',
  'stage',
  'done',
  'total',
  'planHash',
  'metadataVersionBefore',
  'metadataVersionAfter',
  'error',
  'cancelRequested',
  'canceledById',
] as const;

/** A deployment without its plan. */
export interface DeploymentSummary extends Pick<DeploymentModel, (typeof SUMMARY)[number]> {
  /** While it is queued: deployments of the tenant that come first. */
  readonly position: number | null;
}

export interface DeploymentWithPlan extends DeploymentSummary, Pick<DeploymentModel, 'plan'> {}

export interface NewDeployment {
  tenantId: string;
  deploymentId: string;
  kind: 'deploy' | 'validation';
  checkOnly: boolean;
  allowDestructiveChanges: boolean;
  baseMetadataVersion: number | null;
  expectedPlanHash: string | null;
  manifestHash: string;
  package: Package;
  files: Readonly<Record<string, string>>;
  createdBy: {
    userId: string;
    displayName: string;
    clientId: string;
    agentRunId: string | null;
    permissions: readonly string[];
  };
  requestId: string;
  idempotencyKey: string;
}

/** Stores a deployment as QUEUED, behind the others of the tenant. */
export async function insertDeployment(tx: Tx, { createdBy, ...deployment }: NewDeployment): Promise<void> {
  await DeploymentModel.create(
    {
      ...deployment,
      createdByUserId: createdBy.userId,
      createdByDisplayName: createdBy.displayName,
      createdByClientId: createdBy.clientId,
      createdByAgentRunId: createdBy.agentRunId,
      createdByPermissions: [...createdBy.permissions],
    },
    on(tx),
  );
}

export async function findDeployment(
  tx: Tx,
  tenantId: string,
  deploymentId: string,
): Promise<DeploymentWithPlan | null> {
  const found = await DeploymentModel.findOne({
    attributes: [...SUMMARY, 'plan'],
    where: { tenantId, deploymentId },
    ...on(tx),
  });
  const [deployment = null] = found ? await withPositions(tx, tenantId, [found]) : [];
  return deployment;
}

/** Newest first; `before`: those that were accepted before this deployment. */
export async function listDeployments(
  tx: Tx,
  tenantId: string,
  filter: { status: DeploymentStatus | null; checkOnly: boolean | null; before: string | null; take: number },
): Promise<DeploymentSummary[]> {
  const { status, checkOnly, before, take } = filter;
  const last = before === null ? null : await queueNumberOf(tx, tenantId, before);
  if (before !== null && last === null) return [];
  const found = await DeploymentModel.findAll({
    attributes: [...SUMMARY],
    where: {
      tenantId,
      ...(status === null ? {} : { status }),
      ...(checkOnly === null ? {} : { checkOnly }),
      ...(last === null ? {} : { queueNumber: { [Op.lt]: last } }),
    },
    order: [['queueNumber', 'DESC']],
    limit: take,
    ...on(tx),
  });
  return withPositions(tx, tenantId, found);
}

async function queueNumberOf(tx: Tx, tenantId: string, deploymentId: string): Promise<number | null> {
  const found = await DeploymentModel.findOne({
    attributes: ['queueNumber'],
    where: { tenantId, deploymentId },
    ...on(tx),
  });
  return found?.queueNumber ?? null;
}

/** Adds how many open deployments of the tenant stand before each one that is queued. */
async function withPositions<Row extends Pick<DeploymentModel, 'status' | 'queueNumber'>>(
  tx: Tx,
  tenantId: string,
  rows: readonly Row[],
): Promise<(Row & { position: number | null })[]> {
  const queued = rows.filter(({ status }) => status === 'QUEUED');
  const open = queued.length === 0 ? [] : await openNumbers(tx, tenantId);
  return rows.map((row) => ({
    ...row,
    position: row.status === 'QUEUED' ? open.filter((number) => number < row.queueNumber).length : null,
  }));
}

async function openNumbers(tx: Tx, tenantId: string): Promise<number[]> {
  const open = await DeploymentModel.findAll({
    attributes: ['queueNumber'],
    where: { tenantId, status: { [Op.in]: OPEN } },
    ...on(tx),
  });
  return open.map(({ queueNumber }) => queueNumber);
}
