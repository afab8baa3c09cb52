/** The plan of a deployment in the form of the API. */
import type { Statement } from '../../../mixins/database/statement.ts';

export const deploymentPlanStatement = (tenantId: string, deploymentId: string): Statement => ({
  text: `SELECT json_build_object(
      'changes', json_build_object('creates', plan -> 'creates', 'updates', plan -> 'updates',
        'deletes', plan -> 'deletes', 'noops', plan -> 'noops'),
      'blocked', plan -> 'blocked', 'warnings', plan -> 'warnings')::text AS plan
    FROM metadata.deployments WHERE tenant_id = $1 AND deployment_id = $2 AND plan IS NOT NULL`,
  values: [tenantId, deploymentId],
});
