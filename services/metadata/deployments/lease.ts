/**
 * How workers take, keep and finish deployments: each statement holds only for the worker that has the lease. They
 * claim and fence in one statement, so they are SQL and not calls of the model.
 */
import type { DeploymentError, DeploymentStatus } from '../../../contracts/metadata.ts';
import { literal } from '../../../lib/values/sql-text.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { OPEN, UNHELD } from './queue.sql.ts';

/**
 * A worker that has not renewed its lease for so long is taken for lost. Short, because all that a mistake costs is that
 * the work is begun again: only who has the lease commits.
 */
export const LEASE_SECONDS = 3;

/**
 * Capability level of workers. Raised, here and in a migration that replaces the function `metadata.fence_workers`, when they
 * come to do something that those of older versions would do wrong: those then take no deployment any more.
 */
const WORKER_GENERATION = 1;

/** A worker's view of its claimed deployment. */
export interface Claimed {
  deployment_id: string;
  /** CANCELING: its worker was lost while it was being canceled, and what that one has left is cleared away. */
  status: 'VALIDATING' | 'CANCELING';
  kind: 'deploy' | 'validation' | 'quickDeploy' | 'rollback';
  reverts_deployment_id: string | null;
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

/** Takes the tenant's first open deployment, when it waits or its worker was lost; null: another worker has it. */
export function claimDeployment(
  tx: Tx,
  tenantId: string,
  token: string,
  leaseSeconds: number,
): Promise<Claimed | null> {
  return tx.first<Claimed>({
    text: `UPDATE metadata.deployments SET
        status = CASE WHEN status = 'CANCELING' THEN status ELSE 'VALIDATING' END,
        stage = CASE WHEN status = 'CANCELING' THEN stage ELSE 'validate' END,
        done = 0, takes = takes + 1, lease_token = $2::uuid, worker = '${WORKER_GENERATION}:' || $2::uuid,
        lease_until = now() + make_interval(secs => $3),
        started_at = coalesce(started_at, now())
      WHERE tenant_id = $1 AND deployment_id = (
        SELECT deployment_id FROM metadata.deployments WHERE tenant_id = $1 AND status IN ${OPEN}
        ORDER BY queue_number LIMIT 1 FOR UPDATE)
        AND (status = 'QUEUED' OR ${UNHELD})
      RETURNING deployment_id, status, kind, reverts_deployment_id, check_only, allow_destructive_changes, base_metadata_version, expected_plan_hash,
        package::text, files::text, created_by_user_id, created_by_client_id, created_by_agent_run_id, request_id,
        takes`,
    values: [tenantId, token, leaseSeconds],
  });
}

/** How far the work on a deployment is. */
export interface Progressed {
  readonly done: number;
  readonly total: number;
}

/** The state of a deployment that a worker has; null: it belongs to another worker by now. */
export async function renewLease(
  tx: Tx,
  tenantId: string,
  deploymentId: string,
  token: string,
  { leaseSeconds, progress }: { leaseSeconds: number; progress: Progressed | null },
): Promise<DeploymentStatus | null> {
  // A process that stops before it commits would hold the row, for which the next worker waits.
  await tx.query("SET LOCAL idle_in_transaction_session_timeout = '1s'");
  const renewed = await tx.first<{ status: DeploymentStatus }>({
    text: `UPDATE metadata.deployments SET lease_until = now() + make_interval(secs => $4), done = coalesce($5, done),
        total = coalesce($6, total)
      WHERE tenant_id = $1 AND deployment_id = $2 AND lease_token = $3 AND status IN ${OPEN}
      RETURNING status`,
    values: [tenantId, deploymentId, token, leaseSeconds, progress?.done ?? null, progress?.total ?? null],
  });
  return renewed?.status ?? null;
}

/** The same without renewing anything. */
export async function watchLease(
  tx: Tx,
  tenantId: string,
  deploymentId: string,
  token: string,
): Promise<DeploymentStatus | null> {
  const seen = await tx.first<{ status: DeploymentStatus }>({
    text: `SELECT status FROM metadata.deployments
      WHERE tenant_id = $1 AND deployment_id = $2 AND lease_token = $3`,
    values: [tenantId, deploymentId, token],
  });
  return seen?.status ?? null;
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
        done = 0, metadata_version_before = $7
      WHERE tenant_id = $1 AND deployment_id = $2 AND lease_token = $3 AND status IN ('VALIDATING', 'APPLYING')`,
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
  /** JSON. */
  readonly irreversible: string;
  readonly versionBefore: number | null;
  readonly versionAfter: number | null;
  readonly done: number;
  readonly total: number;
  readonly error: DeploymentError | null;
}

/**
 * The end of a deployment; false when the lease was lost or a cancellation was requested, and then the caller must not commit.
 * From here to the commit a request to cancel waits for this row, and comes too late.
 */
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
        total = $11, error = $12, irreversible = $13, lease_token = NULL, lease_until = NULL,
        files = CASE WHEN kind = 'validation' AND $4 = 'SUCCEEDED' THEN files ELSE '{}' END
      WHERE tenant_id = $1 AND deployment_id = $2 AND lease_token = $3 AND status IN ('VALIDATING', 'APPLYING')`,
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
      outcome.irreversible,
    ],
  });
  return rowCount === 1;
}

/** The end of a deployment that was canceled, when everything of it is rolled back; null: the lease was lost. */
export function finishCanceling(
  tx: Tx,
  tenantId: string,
  deploymentId: string,
  token: string,
): Promise<{ canceledById: string | null } | null> {
  return tx.first({
    text: `UPDATE metadata.deployments SET status = 'CANCELED', stage = 'done', finished_at = now(), files = '{}',
        lease_token = NULL, lease_until = NULL
      WHERE tenant_id = $1 AND deployment_id = $2 AND lease_token = $3 AND status = 'CANCELING'
      RETURNING canceled_by_id AS "canceledById"`,
    values: [tenantId, deploymentId, token],
  });
}

/**
 * Ends the lease, so that another worker may take the deployment at once. `untried`: this one does not count among
 * those that were lost.
 */
export async function giveBack(
  tx: Tx,
  tenantId: string,
  deploymentId: string,
  token: string,
  untried: boolean,
): Promise<void> {
  await tx.query({
    text: `UPDATE metadata.deployments SET lease_until = now() - interval '1 ms', lease_token = NULL,
        takes = takes - CASE WHEN $4 THEN 1 ELSE 0 END
      WHERE tenant_id = $1 AND deployment_id = $2 AND lease_token = $3 AND status IN ${OPEN}`,
    values: [tenantId, deploymentId, token, untried],
  });
}

/** Application name of a deployment's transaction while it lasts. */
const transactionName = (deploymentId: string): string => `deployment ${deploymentId}`;

/** Names the transaction, so that the next worker finds it. */
export const nameTransaction = (deploymentId: string): string =>
  `SET LOCAL application_name = ${literal(transactionName(deploymentId))}`;

/**
 * Ends the transaction of a worker that has lost the deployment: it could not commit, and a process that hangs would
 * hold its locks, which keep every writer waiting. Runs as the login, whose connections all workers use.
 */
export const endTransactionStatement = (deploymentId: string): Statement => ({
  text: 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND usename = session_user',
  values: [transactionName(deploymentId)],
});
