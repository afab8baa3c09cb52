/** Cancels deployments. Source: docs/reference/metadata.md#cancel. */
import type { DeploymentStatus } from '../../../contracts/metadata.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import { type CancelRow, cancelStatement, lockStatement, statusStatement } from './cancel.sql.ts';

const ENDED: ReadonlySet<DeploymentStatus> = new Set(['SUCCEEDED', 'FAILED', 'CANCELED']);

export const deploymentNotFound = (): PlatformError =>
  new PlatformError('DEPLOYMENT_NOT_FOUND', 'There is no such deployment.');

/**
 * Asks for a deployment to be canceled, as the role of the service. 404 and 409 DEPLOYMENT_NOT_CANCELABLE; one that is
 * being canceled already stays as it is. One whose last step had begun, so that it ends while we wait for it, is marked
 * and has succeeded.
 */
export async function cancelDeployment(unit: Unit, deploymentId: string, reason: string | null): Promise<void> {
  const { tenantId, userId } = unit.request;
  const row = (statement: typeof statusStatement): Promise<CancelRow | null> =>
    isUuid(deploymentId) ? unit.tx.first<CancelRow>(statement(tenantId, deploymentId)) : Promise.resolve(null);
  const seen = await row(statusStatement);
  if (!seen) throw deploymentNotFound();
  if (ENDED.has(seen.status)) throw notCancelable(seen.status);
  const now = await row(lockStatement);
  if (!now) throw deploymentNotFound();
  const { status } = now;
  if (ENDED.has(status) && status !== 'SUCCEEDED') throw notCancelable(status);
  if (status !== 'CANCELING') await unit.tx.query(cancelStatement(tenantId, deploymentId, userId, reason));
  unit.audit({ changes: { deploymentId, status, ...(reason === null ? {} : { reason }) } });
}

const notCancelable = (status: DeploymentStatus): PlatformError =>
  new PlatformError('DEPLOYMENT_NOT_CANCELABLE', `The deployment has ended: ${status}.`, { details: { status } });
