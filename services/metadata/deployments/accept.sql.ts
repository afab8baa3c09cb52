/** The statement that stores a deployment as QUEUED, behind the others of its tenant. */
import type { Statement } from '../../../mixins/database/statement.ts';

export interface NewDeployment {
  tenantId: string;
  deploymentId: string;
  kind: 'deploy' | 'validation';
  checkOnly: boolean;
  allowDestructiveChanges: boolean;
  baseMetadataVersion: number | null;
  expectedPlanHash: string | null;
  manifestHash: string;
  /** JSON. */
  package: string;
  files: string;
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
      idempotency_key)
    SELECT $1::uuid, $2::uuid, $3, $4::boolean, $5::boolean, $6::integer, $7, $8, $9::json, $10::json, $11::uuid, $12,
      $13, $14::uuid, $15::text[], $16, $17
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
  ],
});
