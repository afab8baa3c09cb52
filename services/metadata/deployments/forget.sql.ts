/** Removes data of ended deployments, so that those of a tenant stay bounded. */
import { LIMITS } from '../../../lib/limits.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

/** A plan is kept for good when it is no larger. */
const PLAN_KEPT_BYTES = 64 * 1024;

/**
 * Takes files, inverse plan and a large plan from deployments that can no longer be used or rolled back, and from the
 * oldest ones of users who exceed their share of the room that a tenant has. Sizes are those that the database stores.
 */
export const forgetStatement = (tenantId: string, maxBytes: number = LIMITS.metadata_kept_max_bytes): Statement => ({
  text: `WITH sized AS MATERIALIZED (
      SELECT deployment_id, finished_at, kind, queue_number, created_by_user_id AS user_id,
        pg_column_size(files) + coalesce(pg_column_size(inverse_plan), 0) + coalesce(pg_column_size(plan), 0) AS bytes
      FROM metadata.deployments
      WHERE tenant_id = $1 AND NOT forgotten AND status IN ('SUCCEEDED', 'FAILED', 'CANCELED')),
    kept AS (
      SELECT deployment_id, finished_at, kind, sum(bytes) OVER () AS total,
        sum(bytes) OVER (PARTITION BY user_id ORDER BY queue_number DESC) AS of_user
      FROM sized)
    UPDATE metadata.deployments d SET forgotten = true, files = '{}', inverse_plan = NULL,
      plan = CASE WHEN octet_length(d.plan::text) <= $2 THEN d.plan END
    FROM kept
    WHERE d.tenant_id = $1 AND d.deployment_id = kept.deployment_id AND ((kept.total > $3 AND kept.of_user > $3 / (SELECT count(DISTINCT user_id) FROM sized))
      OR kept.finished_at < now() - make_interval(days => CASE kept.kind WHEN 'validation' THEN $4::integer ELSE $5::integer END))`,
  values: [tenantId, PLAN_KEPT_BYTES, maxBytes, LIMITS.quick_deploy_days, LIMITS.rollback_days],
});

/** The changed components of a version are needed as long as an earlier version can be restored by a rollback. */
export const forgetVersionsStatement = (tenantId: string): Statement => ({
  text: `DELETE FROM metadata.version_components touched USING metadata.versions made
    WHERE touched.tenant_id = $1 AND made.tenant_id = $1 AND made.version = touched.version
      AND made.made_at < now() - make_interval(days => $2)`,
  values: [tenantId, LIMITS.rollback_days + 1],
});
