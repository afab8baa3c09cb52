/** Statements by which a commit deletes components and brings deleted ones back. */
import { Sql } from '../../mixins/database/sql.ts';
import type { Statement } from '../../mixins/database/statement.ts';

interface Deletion {
  /** JSON of the names of the components. */
  readonly deleted: string;
  /** The version without them. */
  readonly version: number;
  readonly actor: { readonly userId: string | null };
  readonly deploymentId: string | null;
}

/** Moves the deleted components to where they are kept. */
export function deleteComponentsSql(tenantId: string, { deleted, version, actor, deploymentId }: Deletion): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  return sql.statement(`WITH gone AS (
      DELETE FROM metadata.components c
      USING jsonb_to_recordset(${sql.bind(deleted, 'jsonb')}) AS d (type text, full_name text)
      WHERE c.tenant_id = ${tenant} AND c.type = d.type AND c.full_name = d.full_name
      RETURNING c.*)
    INSERT INTO metadata.deleted_components (tenant_id, type, full_name, path, yaml, body, hash, system,
      deleted_at_version, deleted_at, deleted_by_id, deployment_id)
    SELECT tenant_id, type, full_name, path, yaml, body, hash, system, ${sql.bind(version, 'int')}, now(),
      ${sql.bind(actor.userId, 'uuid')}, ${sql.bind(deploymentId, 'uuid')} FROM gone
    ON CONFLICT (tenant_id, type, full_name) DO UPDATE SET path = excluded.path, yaml = excluded.yaml,
      body = excluded.body, hash = excluded.hash, system = excluded.system,
      deleted_at_version = excluded.deleted_at_version, deleted_at = excluded.deleted_at,
      deleted_by_id = excluded.deleted_by_id, deployment_id = excluded.deployment_id`);
}

/** Components that exist again, or whose names others have, are no longer kept. `forgotten` is JSON of their names. */
export function forgetDeletedSql(tenantId: string, forgotten: string): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM metadata.deleted_components d
    USING jsonb_to_recordset(${sql.bind(forgotten, 'jsonb')}) AS r (type text, full_name text)
    WHERE d.tenant_id = ${sql.bind(tenantId, 'uuid')} AND d.type = r.type AND d.full_name = r.full_name`);
}
