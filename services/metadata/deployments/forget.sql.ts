/** What is not kept of deployments that ended long ago, so that a tenant's deployments take a bounded room. */
import type { Statement } from '../../../mixins/database/statement.ts';

/** Deployments of a tenant that ended last and keep everything. */
const KEPT = 50;
/** A plan of an older one is kept when it is no larger. */
const PLAN_KEPT_BYTES = 64 * 1024;

/** Takes the files from the deployment that is one too many: each one that ends leaves one to be forgotten. */
export const forgetStatement = (tenantId: string): Statement => ({
  text: `UPDATE metadata.deployments
    SET files = '{}', inverse_plan = NULL, plan = CASE WHEN octet_length(plan::text) <= $3 THEN plan END
    WHERE tenant_id = $1 AND deployment_id = (
      SELECT deployment_id FROM metadata.deployments
      WHERE tenant_id = $1 AND status IN ('SUCCEEDED', 'FAILED', 'CANCELED')
      ORDER BY queue_number DESC OFFSET $2 LIMIT 1)`,
  values: [tenantId, KEPT, PLAN_KEPT_BYTES],
});
