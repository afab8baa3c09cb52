/** Cancels deployments. Source: docs/reference/metadata.md#cancel. */
import { type DeploymentStatus, ENDED_STATUSES } from '../../../contracts/metadata.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import { type CancelRow, cancelStatement, lockStatement, type SeenRow, statusStatement } from './cancel.sql.ts';
import { deploymentEvent } from './event.ts';

const ENDED: ReadonlySet<DeploymentStatus> = new Set(ENDED_STATUSES);

export const deploymentNotFound = (): PlatformError =>
  new PlatformError('DEPLOYMENT_NOT_FOUND', 'There is no such deployment.');

/**
 * Asks for a deployment to be canceled, as the role of the service. 404, 403 for another user's, which may take
 * from the caller what they hold, and 409 DEPLOYMENT_NOT_CANCELABLE; one that is
 * being canceled already stays as it is. One whose last step had begun, so that it ends while we wait for it, is marked
 * and has succeeded.
 */
export async function cancelDeployment(
  unit: Unit,
  deploymentId: string,
  { reason, cancelsAny }: { reason: string | null; cancelsAny: boolean },
): Promise<void> {
  const { tenantId, userId } = unit.request;
  if (!isUuid(deploymentId)) throw deploymentNotFound();
  const seen = await unit.tx.first<SeenRow>(statusStatement(tenantId, deploymentId));
  if (!seen) throw deploymentNotFound();
  if (seen.createdById !== userId && !cancelsAny) throw notYours();
  if (ENDED.has(seen.status)) throw notCancelable(seen.status);
  const now = await unit.tx.first<CancelRow>(lockStatement(tenantId, deploymentId));
  if (!now) throw deploymentNotFound();
  const { status } = now;
  if (ENDED.has(status) && status !== 'SUCCEEDED') throw notCancelable(status);
  if (status !== 'CANCELING') await unit.tx.query(cancelStatement(tenantId, deploymentId, userId, reason));
  if (status === 'QUEUED') unit.emit(deploymentEvent('CANCELED', { ...now, deploymentId }));
  unit.audit({ changes: { deploymentId, status, ...(reason === null ? {} : { reason }) } });
}

export const notCancelable = (status: DeploymentStatus): PlatformError =>
  new PlatformError('DEPLOYMENT_NOT_CANCELABLE', `The deployment has ended: ${status}.`, { details: { status } });

const notYours = (): PlatformError =>
  new PlatformError(
    'METADATA_PERMISSION_DENIED',
    'Only who asked for a deployment, or holds manageAccess, cancels it.',
    {
      details: { layer: 'objectPermission', permission: 'manageAccess' },
    },
  );
