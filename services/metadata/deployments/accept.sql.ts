/** The statement that stores a deployment as QUEUED, behind the others of its tenant. */
import type { Statement } from '../../../mixins/database/statement.ts';

export interface NewDeployment {
  tenantId: string;
  deploymentId: string;
  kind: 'deploy' | 'validation' | 'quickDeploy' | 'rollback';
  checkOnly: boolean;
  allowDestructiveChanges: boolean;
  baseMetadataVersion: number | null;
  expectedPlanHash: string | null;
  manifestHash: string;
  /** JSON. */
  package: string;
  files: string;
  /** Of a rollback: what it takes back. */
  revertsDeploymentId: string | null;
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

/** No row is stored while the tenant has `openMax` deployments that have not ended. */
export const insertDeploymentStatement = (deployment: NewDeployment, openMax: number): Statement => ({
  text: `INSERT INTO metadata.deployments (tenant_id, deployment_id, kind, check_only, allow_destructive_changes,
      base_metadata_version, expected_plan_hash, manifest_hash, package, files, created_by_user_id,
      created_by_display_name, created_by_client_id, created_by_agent_run_id, created_by_permissions, request_id,
      idempotency_key, reverts_deployment_id)
    SELECT $1::uuid, $2::uuid, $3, $4::boolean, $5::boolean, $6::integer, $7, $8, $9::json, $10::json, $11::uuid, $12,
      $13, $14::uuid, $15::text[], $16, $17, $19::uuid
    WHERE (SELECT count(*) FROM metadata.deployments
      WHERE tenant_id = $1 AND status IN ('QUEUED', 'VALIDATING', 'APPLYING', 'CANCELING')) < $18`,
  values: [
    deployment.tenantId,
    deployment.deploymentId,
    deployment.kind,
    deployment.checkOnly,
    deployment.allowDestructiveChanges,
    deployment.baseMetadataVersion,
    deployment.expectedPlanHash,
    deployment.manifestHash,
    deployment.package,
    deployment.files,
    deployment.createdBy.userId,
    deployment.createdBy.displayName,
    deployment.createdBy.clientId,
    deployment.createdBy.agentRunId,
    deployment.createdBy.permissions,
    deployment.requestId,
    deployment.idempotencyKey,
    openMax,
    deployment.revertsDeploymentId,
  ],
});

/**
 * A validation is used by one deployment, or again after that one has failed or was canceled. Gives a row when this one
 * has it: of two at once, the second waits here and finds it used.
 */
export const useValidationStatement = (tenantId: string, validationId: string, deploymentId: string): Statement => ({
  text: `UPDATE metadata.deployments validation SET used_by_deployment_id = $3
    WHERE tenant_id = $1 AND deployment_id = $2 AND (used_by_deployment_id IS NULL OR EXISTS (
      SELECT FROM metadata.deployments used
      WHERE used.tenant_id = $1 AND used.deployment_id = validation.used_by_deployment_id
        AND used.status IN ('FAILED', 'CANCELED')))
    RETURNING 1 AS used`,
  values: [tenantId, validationId, deploymentId],
});
