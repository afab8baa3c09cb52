/**
 * Accepts a deployment: the key, the deployment and the audit entry are one transaction, so that the same key
 * twice is one deployment. Source: docs/reference/idempotency.md.
 */

import type { UserIdentity } from '../../../contracts/data.ts';
import { addressOf } from '../../../contracts/operations.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import { type NewDeployment, useValidationStatement } from './accept.sql.ts';
import { deploymentEvent } from './event.ts';
import { quickDeployRefusal } from './standing.ts';
import { insertDeployment } from './store.ts';

/** A deployment as one of the forms of a request makes it. */
export interface Requested
  extends Pick<
    NewDeployment,
    | 'kind'
    | 'checkOnly'
    | 'allowDestructiveChanges'
    | 'baseMetadataVersion'
    | 'expectedPlanHash'
    | 'manifestHash'
    | 'package'
    | 'files'
    | 'revertsDeploymentId'
  > {
  /** The validation that it uses. */
  readonly validationId: string | null;
}

/** Stores the deployment, which is its place in the queue, in the unit that has claimed the key. */
export async function acceptDeployment(
  unit: Unit,
  user: UserIdentity,
  { validationId, ...requested }: Requested,
): Promise<OperationReply> {
  const { tx, request, key } = unit;
  const { kind, checkOnly, manifestHash, revertsDeploymentId } = requested;
  const { tenantId, clientId, agentRunId, requestId } = request;
  const deploymentId = uuidv7();
  unit.actAs({ service: 'metadata' });
  if (validationId !== null && !(await tx.first(useValidationStatement(tenantId, validationId, deploymentId))))
    throw quickDeployRefusal('ALREADY_USED');
  await insertDeployment(tx, {
    ...requested,
    tenantId,
    deploymentId,
    createdBy: {
      userId: user.id,
      displayName: user.displayName,
      permissions: user.systemPermissions,
      clientId,
      agentRunId,
    },
    requestId,
    idempotencyKey: key.key,
  });
  unit.audit({
    changes: {
      deploymentId,
      kind,
      checkOnly,
      ...(validationId === null ? {} : { validationId }),
      ...(revertsDeploymentId === null ? {} : { revertsDeploymentId }),
    },
  });
  unit.emit(deploymentEvent('QUEUED', { deploymentId, userId: user.id, kind, checkOnly }));
  const self = addressOf('metadata.deployments.get', { deploymentId });
  return unit.complete({
    status: 202,
    headers: { Location: self },
    body: { deploymentId, status: 'QUEUED', checkOnly, manifestHash, links: { self } },
  });
}
