/**
 * How workers take, keep and finish deployments: each statement holds only for the worker that has the lease. They
 * claim and fence in one statement, so they are SQL and not calls of the model.
 */
import type { DeploymentError } from '../../../contracts/metadata.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import { forgetStatement } from './forget.sql.ts';

/** A worker that has not renewed its lease for so long is taken for lost. */
export const LEASE_SECONDS = 60;

/** What a worker needs of the deployment that it has claimed. */
export interface Claimed {
  deployment_id: string;
  check_only: boolean;
  allow_destructive_changes: boolean;
  base_metadata_version: number | null;
  expected_plan_hash: string | null;
  /** JSON. */
  package: string;
  files: string;
  created_by_user_id: string;
  created_by_client_id: string;
  created_by_agent_run_id: string | null;
  request_id: string;
  takes: number;
}

const OPEN = "('QUEUED', 'VALIDATING', 'APPLYING', 'CANCELING')";

/**
 * Takes the tenant's first open deployment, when it waits or its worker was lost. `busyUntil`: another worker has it.
 */
export async function claimDeployment(
  tx: Tx,
  tenantId: string,
  token: string,
  leaseSeconds: number,
): Promise<{ claimed: Claimed | null; busyUntil: Date | null }> {
  const { rows } = await tx.query<Claimed>({
    text: `UPDATE metadata.deployments SET status = 'VALIDATING', stage = 'validate', done = 0, takes = takes + 1,
        lease_token = $2, lease_until = now() + make_interval(secs => $3), started_at = coalesce(started_at, now())
      WHERE tenant_id = $1 AND deployment_id = (
        SELECT deployment_id FROM metadata.deployments WHERE tenant_id = $1 AND status IN ${OPEN}
        ORDER BY queue_number LIMIT 1 FOR UPDATE)
        AND (status = 'QUEUED' OR lease_until < now())
      RETURNING deployment_id, check_only, allow_destructive_changes, base_metadata_version, expected_plan_hash,
        package::text, files::text, created_by_user_id, created_by_client_id, created_by_agent_run_id, request_id,
        takes`,
    values: [tenantId, token, leaseSeconds],
  });
  if (rows[0]) return { claimed: rows[0], busyUntil: null };
  const { rows: open } = await tx.query<{ lease_until: string | null }>({
    text: `SELECT lease_until FROM metadata.deployments WHERE tenant_id = $1 AND status IN ${OPEN}
      ORDER BY queue_number LIMIT 1`,
    values: [tenantId],
  });
  return { claimed: null, busyUntil: open[0] ? new Date(open[0].lease_until ?? Date.now()) : null };
}

/** False: the deployment belongs to another worker by now. */
export async function renewLease(
  tx: Tx,
  tenantId: string,
  deploymentId: string,
  token: string,
  leaseSeconds: number,
): Promise<boolean> {
  const { rowCount } = await tx.query({
    text: `UPDATE metadata.deployments SET lease_until = now() + make_interval(secs => $4)
      WHERE tenant_id = $1 AND deployment_id = $2 AND lease_token = $3 AND status IN ${OPEN}`,
    values: [tenantId, deploymentId, token, leaseSeconds],
  });
  return rowCount === 1;
}

export async function markApplying(
  tx: Tx,
  tenantId: string,
  deploymentId: string,
  token: string,
  facts: { plan: string; planHash: string; total: number; versionBefore: number },
): Promise<boolean> {
  const { rowCount } = await tx.query({
    text: `UPDATE metadata.deployments SET status = 'APPLYING', stage = 'apply', plan = $4, plan_hash = $5, total = $6,
        metadata_version_before = $7
      WHERE tenant_id = $1 AND deployment_id = $2 AND lease_token = $3 AND status = 'VALIDATING'`,
    values: [tenantId, deploymentId, token, facts.plan, facts.planHash, facts.total, facts.versionBefore],
  });
  return rowCount === 1;
}

export interface Outcome {
  readonly status: 'SUCCEEDED' | 'FAILED';
  /** JSON. */
  readonly plan: string | null;
  readonly planHash: string | null;
  /** JSON. */
  readonly inverse: string | null;
  readonly versionBefore: number | null;
  readonly versionAfter: number | null;
  readonly done: number;
  readonly total: number;
  readonly error: DeploymentError | null;
}

/** The end of a deployment; false when the lease was lost, and then the caller must not commit. */
export async function finishDeployment(
  tx: Tx,
  tenantId: string,
  deploymentId: string,
  token: string,
  outcome: Outcome,
): Promise<boolean> {
  const { rowCount } = await tx.query({
    text: `UPDATE metadata.deployments SET status = $4, stage = 'done', finished_at = now(),
        plan = coalesce($5::json, plan), plan_hash = coalesce($6, plan_hash), inverse_plan = $7,
        metadata_version_before = coalesce($8, metadata_version_before), metadata_version_after = $9, done = $10,
        total = $11, error = $12, lease_token = NULL, lease_until = NULL
      WHERE tenant_id = $1 AND deployment_id = $2 AND lease_token = $3 AND status IN ${OPEN}`,
    values: [
      tenantId,
      deploymentId,
      token,
      outcome.status,
      outcome.plan,
      outcome.planHash,
      outcome.inverse,
      outcome.versionBefore,
      outcome.versionAfter,
      outcome.done,
      outcome.total,
      outcome.error && JSON.stringify(outcome.error),
    ],
  });
  if (rowCount !== 1) return false;
  await tx.query(forgetStatement(tenantId));
  return true;
}
