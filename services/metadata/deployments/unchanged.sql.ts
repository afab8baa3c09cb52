/** Finds components with the content of an earlier version, by what deployments keep. */
import { LIMITS } from '../../../lib/limits.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

export interface ComponentName {
  readonly type: string;
  readonly fullName: string;
}

/**
 * The first version after `since` that changed a component keeps the content before it, for a rollback. Nothing is given
 * where that is not kept any more, so that in doubt a component counts as changed.
 */
export const unchangedStatement = (
  tenantId: string,
  since: number,
  components: readonly ComponentName[],
): Statement => ({
  text: `WITH changed AS (
      SELECT now.type, now.full_name, now.path, now.yaml, (
        SELECT min(touched.version) FROM metadata.version_components touched
        WHERE touched.tenant_id = $1 AND touched.type = now.type AND touched.full_name = now.full_name
          AND touched.version > $2) AS version
      FROM metadata.components now
        JOIN jsonb_to_recordset($3) AS named (type text, "fullName" text)
          ON named.type = now.type AND named."fullName" = now.full_name
      WHERE now.tenant_id = $1 AND EXISTS (
        SELECT FROM metadata.versions next
        WHERE next.tenant_id = $1 AND next.version = $2::int + 1 AND next.made_at > now() - make_interval(days => $4))),
    before AS (
      SELECT made.version, file.path, file.yaml
      FROM metadata.versions made
        JOIN metadata.deployments d ON d.tenant_id = $1 AND d.deployment_id = made.deployment_id
        CROSS JOIN LATERAL json_each_text(d.inverse_plan -> 'files') AS file (path, yaml)
      WHERE made.tenant_id = $1 AND made.version IN (SELECT version FROM changed))
    SELECT changed.type, changed.full_name AS "fullName"
    FROM changed JOIN before USING (version, path) WHERE before.yaml = changed.yaml`,
  values: [tenantId, since, JSON.stringify(components), LIMITS.rollback_days],
});
