/** Rows of metadata.deployments. */
import type { Tx } from '../../../mixins/database/database.ts';
import type { Problem } from '../kinds/kind.ts';
import type { Change, Plan } from '../planner/plan.ts';
import type { Package } from '../project/project.ts';

type Queryable = Pick<Tx, 'query'>;

export type Status = 'QUEUED' | 'VALIDATING' | 'APPLYING' | 'CANCELING' | 'SUCCEEDED' | 'FAILED' | 'CANCELED';

export interface StoredPlan {
  creates: Change[];
  updates: Change[];
  deletes: Change[];
  noops: Change[];
  blocked: Problem[];
  warnings: Problem[];
}

export interface DeploymentRow {
  deployment_id: string;
  queue_number: number;
  status: Status;
  kind: 'deploy' | 'validation' | 'quickDeploy' | 'rollback';
  check_only: boolean;
  allow_destructive_changes: boolean;
  manifest_hash: string;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  created_by_user_id: string;
  created_by_display_name: string;
  created_by_client_id: string;
  created_by_agent_run_id: string | null;
  stage: 'queue' | 'validate' | 'apply' | 'done';
  done: number;
  total: number;
  plan_hash: string | null;
  metadata_version_before: number | null;
  metadata_version_after: number | null;
  error: { code: string; message: string } | null;
  cancel_requested: boolean;
  canceled_by_id: string | null;
  /** Deployments of the tenant that come first. */
  ahead: number;
}

export interface DeploymentWithPlan extends DeploymentRow {
  plan: StoredPlan | null;
}

/** What a worker needs besides. */
export interface Claimed {
  deployment_id: string;
  check_only: boolean;
  allow_destructive_changes: boolean;
  base_metadata_version: number | null;
  expected_plan_hash: string | null;
  package: Package;
  files: Record<string, string>;
  created_by_user_id: string;
  created_by_client_id: string;
  created_by_agent_run_id: string | null;
  created_by_permissions: string[];
  request_id: string;
  takes: number;
}

const OPEN = "('QUEUED', 'VALIDATING', 'APPLYING', 'CANCELING')";

const COLUMNS = `d.deployment_id, d.queue_number, d.status, d.kind, d.check_only, d.allow_destructive_changes, d.manifest_hash,
  d.created_at, d.started_at, d.finished_at, d.created_by_user_id, d.created_by_display_name, d.created_by_client_id,
  d.created_by_agent_run_id, d.stage, d.done, d.total, d.plan_hash, d.metadata_version_before, d.metadata_version_after,
  d.error, d.cancel_requested, d.canceled_by_id,
  CASE WHEN d.status = 'QUEUED' THEN (SELECT count(*) FROM metadata.deployments o WHERE o.tenant_id = d.tenant_id
    AND o.queue_number < d.queue_number AND o.status IN ${OPEN}) ELSE 0 END AS ahead`;

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

export function insertDeployment(db: Queryable, d: NewDeployment): Promise<unknown> {
  return db.query({
    text: `INSERT INTO metadata.deployments (tenant_id, deployment_id, kind, check_only, allow_destructive_changes,
        base_metadata_version, expected_plan_hash, manifest_hash, package, files, created_by_user_id, created_by_display_name,
        created_by_client_id, created_by_agent_run_id, created_by_permissions, request_id, idempotency_key)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
    values: [
      d.tenantId,
      d.deploymentId,
      d.kind,
      d.checkOnly,
      d.allowDestructiveChanges,
      d.baseMetadataVersion,
      d.expectedPlanHash,
      d.manifestHash,
      JSON.stringify(d.package),
      JSON.stringify(d.files),
      d.createdBy.userId,
      d.createdBy.displayName,
      d.createdBy.clientId,
      d.createdBy.agentRunId,
      d.createdBy.permissions,
      d.requestId,
      d.idempotencyKey,
    ],
  });
}

export async function findDeployment(
  db: Queryable,
  tenantId: string,
  deploymentId: string,
): Promise<DeploymentWithPlan | null> {
  const { rows } = await db.query<DeploymentWithPlan>({
    text: `SELECT ${COLUMNS}, d.plan FROM metadata.deployments d WHERE d.tenant_id = $1 AND d.deployment_id = $2`,
    values: [tenantId, deploymentId],
  });
  return rows[0] ?? null;
}

export async function listDeployments(
  db: Queryable,
  tenantId: string,
  filter: { status: string | null; checkOnly: boolean | null; before: string | null; take: number },
): Promise<DeploymentRow[]> {
  const { rows } = await db.query<DeploymentRow>({
    text: `SELECT ${COLUMNS} FROM metadata.deployments d WHERE d.tenant_id = $1
        AND ($2::text IS NULL OR d.status = $2) AND ($3::boolean IS NULL OR d.check_only = $3)
        AND ($4::uuid IS NULL OR d.queue_number <
          (SELECT queue_number FROM metadata.deployments WHERE tenant_id = $1 AND deployment_id = $4))
      ORDER BY d.queue_number DESC LIMIT $5`,
    values: [tenantId, filter.status, filter.checkOnly, filter.before, filter.take],
  });
  return rows;
}

/**
 * Takes the tenant's first open deployment, when it waits or its worker was lost. `busyUntil`: another worker has it.
 */
export async function claimDeployment(
  db: Queryable,
  tenantId: string,
  token: string,
  leaseSeconds: number,
): Promise<{ claimed: Claimed | null; busyUntil: Date | null }> {
  const { rows } = await db.query<Claimed>({
    text: `UPDATE metadata.deployments SET status = 'VALIDATING', stage = 'validate', done = 0, takes = takes + 1,
        lease_token = $2, lease_until = now() + make_interval(secs => $3), started_at = coalesce(started_at, now())
      WHERE tenant_id = $1 AND deployment_id = (
        SELECT deployment_id FROM metadata.deployments WHERE tenant_id = $1 AND status IN ${OPEN}
        ORDER BY queue_number LIMIT 1 FOR UPDATE)
        AND (status = 'QUEUED' OR lease_until < now())
      RETURNING deployment_id, check_only, allow_destructive_changes, base_metadata_version, expected_plan_hash, package,
        files, created_by_user_id, created_by_client_id, created_by_agent_run_id, created_by_permissions, request_id, takes`,
    values: [tenantId, token, leaseSeconds],
  });
  if (rows[0]) return { claimed: rows[0], busyUntil: null };
  const { rows: open } = await db.query<{ lease_until: string | null }>({
    text: `SELECT lease_until FROM metadata.deployments WHERE tenant_id = $1 AND status IN ${OPEN}
      ORDER BY queue_number LIMIT 1`,
    values: [tenantId],
  });
  return { claimed: null, busyUntil: open[0] ? new Date(open[0].lease_until ?? Date.now()) : null };
}

/** False: the deployment belongs to another worker by now. */
export async function renewLease(
  db: Queryable,
  tenantId: string,
  deploymentId: string,
  token: string,
  leaseSeconds: number,
): Promise<boolean> {
  const { rowCount } = await db.query({
    text: `UPDATE metadata.deployments SET lease_until = now() + make_interval(secs => $4)
      WHERE tenant_id = $1 AND deployment_id = $2 AND lease_token = $3 AND status IN ${OPEN}`,
    values: [tenantId, deploymentId, token, leaseSeconds],
  });
  return rowCount === 1;
}

export async function markApplying(
  db: Queryable,
  tenantId: string,
  deploymentId: string,
  token: string,
  facts: { plan: StoredPlan; planHash: string; total: number; versionBefore: number },
): Promise<boolean> {
  const { rowCount } = await db.query({
    text: `UPDATE metadata.deployments SET status = 'APPLYING', stage = 'apply', plan = $4, plan_hash = $5, total = $6,
        metadata_version_before = $7
      WHERE tenant_id = $1 AND deployment_id = $2 AND lease_token = $3 AND status = 'VALIDATING'`,
    values: [
      tenantId,
      deploymentId,
      token,
      JSON.stringify(facts.plan),
      facts.planHash,
      facts.total,
      facts.versionBefore,
    ],
  });
  return rowCount === 1;
}

export interface Outcome {
  readonly status: 'SUCCEEDED' | 'FAILED';
  readonly plan: StoredPlan | null;
  readonly planHash: string | null;
  readonly inverse: Plan['inverse'] | null;
  readonly versionBefore: number | null;
  readonly versionAfter: number | null;
  readonly done: number;
  readonly total: number;
  readonly error: { code: string; message: string } | null;
}

/** The end of a deployment; false when the lease was lost, and then the caller must not commit. */
export async function finishDeployment(
  db: Queryable,
  tenantId: string,
  deploymentId: string,
  token: string,
  outcome: Outcome,
): Promise<boolean> {
  const { rowCount } = await db.query({
    text: `UPDATE metadata.deployments SET status = $4, stage = 'done', finished_at = now(), plan = coalesce($5::json, plan),
        plan_hash = coalesce($6, plan_hash), inverse_plan = $7, metadata_version_before = coalesce($8, metadata_version_before),
        metadata_version_after = $9, done = $10, total = $11, error = $12, lease_token = NULL, lease_until = NULL
      WHERE tenant_id = $1 AND deployment_id = $2 AND lease_token = $3 AND status IN ${OPEN}`,
    values: [
      tenantId,
      deploymentId,
      token,
      outcome.status,
      outcome.plan && JSON.stringify(outcome.plan),
      outcome.planHash,
      outcome.inverse && JSON.stringify(outcome.inverse),
      outcome.versionBefore,
      outcome.versionAfter,
      outcome.done,
      outcome.total,
      outcome.error && JSON.stringify(outcome.error),
    ],
  });
  return rowCount === 1;
}

export const storedPlan = ({ creates, updates, deletes, noops, blocked, warnings }: Plan): StoredPlan => ({
  creates,
  updates,
  deletes,
  noops,
  blocked,
  warnings,
});
