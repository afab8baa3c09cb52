/** Statements of cancelling a deployment. */
import type { DeploymentStatus } from '../../../contracts/metadata.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import type { ToldDeployment } from './event.ts';

export interface SeenRow {
  readonly status: DeploymentStatus;
  readonly createdById: string;
}

export interface CancelRow extends Omit<ToldDeployment, 'deploymentId'> {
  readonly status: DeploymentStatus;
}

export const statusStatement = (tenantId: string, deploymentId: string): Statement => ({
  text: `SELECT status, created_by_user_id AS "createdById" FROM metadata.deployments
    WHERE tenant_id = $1 AND deployment_id = $2`,
  values: [tenantId, deploymentId],
});

/** Waits for a worker that is about to commit: what it makes of the deployment is decided by who has the row first. */
export const lockStatement = (tenantId: string, deploymentId: string): Statement => ({
  text: `SELECT status, created_by_user_id AS "userId", kind, check_only AS "checkOnly" FROM metadata.deployments
    WHERE tenant_id = $1 AND deployment_id = $2 FOR UPDATE`,
  values: [tenantId, deploymentId],
});

/** On the locked row; without `userId` for an operator. One that has ended meanwhile keeps its state. */
export const cancelStatement = (
  tenantId: string,
  deploymentId: string,
  userId: string | null,
  reason: string | null,
): Statement => ({
  text: `UPDATE metadata.deployments SET cancel_requested = true, canceled_by_id = $3, cancel_reason = $4,
      stage = CASE WHEN status = 'QUEUED' THEN 'done' ELSE stage END,
      finished_at = CASE WHEN status = 'QUEUED' THEN now() ELSE finished_at END,
      files = CASE WHEN status = 'QUEUED' THEN '{}' ELSE files END,
      status = CASE status WHEN 'QUEUED' THEN 'CANCELED' WHEN 'SUCCEEDED' THEN 'SUCCEEDED' ELSE 'CANCELING' END
    WHERE tenant_id = $1 AND deployment_id = $2`,
  values: [tenantId, deploymentId, userId, reason],
});
