/** A deployment's usability after its end: whether it can be used by a quick deploy, or rolled back. */

import type { DeploymentStatus, RollbackBlocker } from '../../../contracts/metadata.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

type Named = Pick<RollbackBlocker, 'type' | 'fullName'>;

/** Facts about a deployment from its row and later versions. */
export interface Standing {
  readonly deploymentId: string;
  readonly kind: 'deploy' | 'validation' | 'quickDeploy' | 'rollback';
  readonly status: DeploymentStatus;
  readonly checkOnly: boolean;
  /** Until when a validation can be used; null: it has not succeeded. */
  readonly validUntil: string | null;
  readonly validationExpired: boolean;
  /** The deployment that uses it, unless that one failed or was canceled. */
  readonly usedByDeploymentId: string | null;
  /** A component of its package has changed since. */
  readonly drifted: boolean;
  /** It made a version. */
  readonly changed: boolean;
  readonly rollbackExpired: boolean;
  /** The data needed to use it, or to roll it back, is kept. */
  readonly kept: boolean;
  readonly revertedByDeploymentId: string | null;
  readonly revertsDeploymentId: string | null;
  /** Components that nothing restores. */
  readonly irreversible: readonly Named[];
  /** Components that were changed after it by what is still in effect; the first of them. */
  readonly changedLater: readonly Named[];
}

/** Blockers in one answer. */
export const BLOCKERS_MAX = 200;

/**
 * A later version does not stand against a rollback when it was taken back, or when it is itself the rollback of
 * something later: the two together left the components as they were.
 */
const CHANGED_LATER = `
  SELECT mine.type, mine.full_name FROM metadata.version_components mine
  WHERE mine.tenant_id = d.tenant_id AND mine.version = d.metadata_version_after AND EXISTS (
    SELECT FROM metadata.version_components later
      JOIN metadata.versions made ON made.tenant_id = later.tenant_id AND made.version = later.version
      LEFT JOIN metadata.deployments other
        ON other.tenant_id = made.tenant_id AND other.deployment_id = made.deployment_id
      LEFT JOIN metadata.deployments undone
        ON undone.tenant_id = other.tenant_id AND undone.deployment_id = other.reverts_deployment_id
    WHERE later.tenant_id = mine.tenant_id AND later.type = mine.type AND later.full_name = mine.full_name
      AND later.version > mine.version AND other.reverted_by_deployment_id IS NULL
      AND (undone.metadata_version_after > mine.version) IS NOT TRUE)
  ORDER BY mine.type, mine.full_name LIMIT ${BLOCKERS_MAX}`;

const DRIFTED = `
  SELECT FROM metadata.version_components later
  WHERE later.tenant_id = d.tenant_id AND later.version > d.metadata_version_before
    AND (later.type, later.full_name) IN (
      SELECT listed ->> 'name', member FROM json_array_elements(d.package -> 'types') listed,
        json_array_elements_text(listed -> 'members') member)`;

const CHANGED = 'coalesce(d.metadata_version_after > d.metadata_version_before, false)';

export const standingStatement = (tenantId: string, deploymentId: string): Statement => ({
  text: `SELECT d.deployment_id AS "deploymentId", d.kind, d.status, d.check_only AS "checkOnly",
      CASE WHEN d.status = 'SUCCEEDED' THEN d.finished_at + make_interval(days => $3) END AS "validUntil",
      coalesce(d.finished_at < now() - make_interval(days => $3), false) AS "validationExpired",
      CASE WHEN used.status NOT IN ('FAILED', 'CANCELED') THEN used.deployment_id END AS "usedByDeploymentId",
      d.kind = 'validation' AND d.status = 'SUCCEEDED' AND EXISTS (${DRIFTED}) AS drifted,
      ${CHANGED} AS changed,
      coalesce(d.finished_at < now() - make_interval(days => $4), false) AS "rollbackExpired",
      NOT d.forgotten AND (d.kind = 'validation' OR (d.inverse_plan IS NOT NULL AND EXISTS (
        SELECT FROM metadata.version_components
        WHERE tenant_id = d.tenant_id AND version = d.metadata_version_after))) AS kept,
      d.reverted_by_deployment_id AS "revertedByDeploymentId", d.reverts_deployment_id AS "revertsDeploymentId",
      d.irreversible,
      CASE WHEN ${CHANGED} THEN (
        SELECT coalesce(json_agg(json_build_object('type', type, 'fullName', full_name)), '[]')
        FROM (${CHANGED_LATER}) found) ELSE '[]' END AS "changedLater"
    FROM metadata.deployments d LEFT JOIN metadata.deployments used
      ON used.tenant_id = d.tenant_id AND used.deployment_id = d.used_by_deployment_id
    WHERE d.tenant_id = $1 AND d.deployment_id = $2`,
  values: [tenantId, deploymentId, LIMITS.quick_deploy_days, LIMITS.rollback_days],
});

/** Columns that a quick deploy takes over from a validation. */
export interface KeptValidation {
  readonly manifestHash: string;
  readonly planHash: string;
  readonly allowDestructiveChanges: boolean;
  /** JSON. */
  readonly package: string;
  readonly files: string;
}

export const keptValidationStatement = (tenantId: string, deploymentId: string): Statement => ({
  text: `SELECT manifest_hash AS "manifestHash", plan_hash AS "planHash",
      allow_destructive_changes AS "allowDestructiveChanges", package::text, files::text
    FROM metadata.deployments WHERE tenant_id = $1 AND deployment_id = $2`,
  values: [tenantId, deploymentId],
});

export const inverseStatement = (tenantId: string, deploymentId: string): Statement => ({
  text: 'SELECT inverse_plan::text AS inverse FROM metadata.deployments WHERE tenant_id = $1 AND deployment_id = $2',
  values: [tenantId, deploymentId],
});

/**
 * A rollback that takes effect: what it takes back is reverted by it. When that was a rollback itself, what that one had
 * taken back is in effect again, and so on.
 */
export const revertStatement = (tenantId: string, rollbackId: string): Statement => ({
  text: `WITH RECURSIVE chain AS (
      SELECT deployment_id, reverts_deployment_id, 1 AS depth FROM metadata.deployments
      WHERE tenant_id = $1 AND deployment_id = $2
      UNION ALL
      SELECT d.deployment_id, d.reverts_deployment_id, chain.depth + 1
      FROM chain JOIN metadata.deployments d ON d.tenant_id = $1 AND d.deployment_id = chain.reverts_deployment_id)
    UPDATE metadata.deployments d
    SET reverted_by_deployment_id = CASE WHEN chain.depth % 2 = 1 THEN chain.deployment_id END
    FROM chain WHERE d.tenant_id = $1 AND d.deployment_id = chain.reverts_deployment_id`,
  values: [tenantId, rollbackId],
});
