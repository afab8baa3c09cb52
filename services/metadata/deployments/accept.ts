/**
 * Accepts a deployment: the key, the deployment, its job and the audit entry are one transaction, so that the same key
 * twice is one deployment. Source: docs/reference/idempotency.md.
 */
import type { UserIdentity } from '../../../contracts/data.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import type { Accepted } from '../planning/tasks.ts';
import type { NewDeployment } from './accept.sql.ts';
import type { DeploymentJobs } from './jobs.ts';
import { insertDeployment } from './store.ts';

/** What a caller asks to deploy. */
interface Requested extends Omit<NewDeployment, 'tenantId' | 'requestId' | 'idempotencyKey' | 'createdBy'> {
  readonly createdBy: Omit<NewDeployment['createdBy'], 'clientId' | 'agentRunId'>;
}

export function newDeployment(user: UserIdentity, accepted: Accepted): Requested {
  const checkOnly = accepted.checkOnly ?? false;
  return {
    deploymentId: uuidv7(),
    kind: checkOnly ? 'validation' : 'deploy',
    checkOnly,
    allowDestructiveChanges: accepted.allowDestructiveChanges ?? false,
    baseMetadataVersion: accepted.baseMetadataVersion ?? null,
    expectedPlanHash: accepted.expectedPlanHash ?? null,
    manifestHash: accepted.manifestHash,
    package: accepted.package,
    files: accepted.files,
    createdBy: { userId: user.id, displayName: user.displayName, permissions: user.systemPermissions },
  };
}

/** Stores the deployment and enqueues its job in the unit that has claimed the key. */
export async function acceptDeployment(
  unit: Unit,
  jobs: DeploymentJobs,
  requested: Requested,
): Promise<OperationReply> {
  const { tx, request, key } = unit;
  const { deploymentId, checkOnly, manifestHash } = requested;
  unit.actAs({ service: 'metadata' });
  await insertDeployment(tx, {
    ...requested,
    tenantId: request.tenantId,
    createdBy: { ...requested.createdBy, clientId: request.clientId, agentRunId: request.agentRunId },
    requestId: request.requestId,
    idempotencyKey: key.key,
  });
  await jobs.enqueue(tx, request.tenantId);
  unit.audit({ changes: { deploymentId, checkOnly } });
  const self = `/api/v1/metadata/deployments/${deploymentId}`;
  return unit.complete({
    status: 202,
    headers: { Location: self },
    body: { deploymentId, status: 'QUEUED', checkOnly, manifestHash, links: { self } },
  });
}
