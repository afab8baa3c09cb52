/** Deployments that are accepted and looked at; workers take them with lease.ts. */

import { Op } from 'sequelize';
import { type DeploymentStatus, OPEN_STATUSES } from '../../../contracts/metadata.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import { on } from '../../../mixins/models/sequelize.ts';
import { DeploymentModel } from '../models/deployment.ts';
import { insertDeploymentStatement, type NewDeployment } from './accept.sql.ts';
import { deploymentPlanStatement } from './plan.sql.ts';
import { type Standing, standingStatement } from './standing.sql.ts';

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
  'cancelReason',
] as const;

/** A deployment without its plan. */
export interface DeploymentSummary extends Pick<DeploymentModel, (typeof SUMMARY)[number]> {
  /** While it is queued: deployments of the tenant that come first. */
  readonly position: number | null;
}

/** Deployments of a tenant that have not ended. Each keeps its files, and they are worked off one after the other. */
const OPEN_MAX = 50;

/** Stores a deployment as QUEUED, behind the others of the tenant. 429 when the tenant has too many of them. */
export async function insertDeployment(tx: Tx, deployment: NewDeployment): Promise<void> {
  const { rowCount } = await tx.query(insertDeploymentStatement(deployment, OPEN_MAX));
  if (rowCount === 0)
    throw new PlatformError(
      'CONCURRENCY_LIMIT_EXCEEDED',
      `The tenant already has ${OPEN_MAX} unfinished deployments, the maximum.`,
      {
        retryAfterSeconds: 5,
        details: { max: OPEN_MAX },
      },
    );
}

export async function findDeployment(
  tx: Tx,
  tenantId: string,
  deploymentId: string,
): Promise<DeploymentSummary | null> {
  const found = await DeploymentModel.findOne({
    attributes: [...SUMMARY],
    where: { tenantId, deploymentId },
    ...on(tx),
  });
  const [deployment = null] = found ? await withPositions(tx, tenantId, [found]) : [];
  return deployment;
}

/** A deployment's usability after its end; null: there is none with this id. */
export function standingOf(tx: Tx, tenantId: string, deploymentId: string): Promise<Standing | null> {
  const id = deploymentId.toLowerCase();
  return isUuid(id) ? tx.first<Standing>(standingStatement(tenantId, id)) : Promise.resolve(null);
}

/** The plan of a deployment as JSON of the API; null: there is none. It can be large, and is not parsed. */
export async function planOfDeployment(tx: Tx, tenantId: string, deploymentId: string): Promise<string | null> {
  const found = await tx.first<{ plan: string | null }>(deploymentPlanStatement(tenantId, deploymentId));
  return found?.plan ?? null;
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
    where: { tenantId, status: { [Op.in]: [...OPEN_STATUSES] } },
    ...on(tx),
  });
  return open.map(({ queueNumber }) => queueNumber);
}
