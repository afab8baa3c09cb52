/** Statements that remove deleted components after their retention. `schema` is quoted. */
import { Sql } from '../../mixins/database/sql.ts';
import type { Statement } from '../../mixins/database/statement.ts';
import { RETENTION_DAYS } from './planner/deletions.ts';

/** A rollback that is accepted at the last moment has an hour to bring it back whole. */
const EXPIRED = `deleted_at < now() - interval '${RETENTION_DAYS} days 1 hour'`;

/** Expired objects and fields, objects first: their fields go with them. */
export function expiredTablesSql(tenantId: string, take: number): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT type, full_name AS "fullName" FROM metadata.deleted_components
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND ${EXPIRED} AND type IN ('CustomObject', 'CustomField')
    ORDER BY type DESC, full_name LIMIT ${sql.bind(take, 'int')}`);
}

/** Removes the other expired components. */
export function forgetExpiredSql(tenantId: string): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM metadata.deleted_components
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND ${EXPIRED} AND type NOT IN ('CustomObject', 'CustomField')`);
}

/** Removes one expired object, with its fields, or one expired field; no row when it is no longer there. */
export function forgetTableSql(tenantId: string, { type, fullName }: { type: string; fullName: string }): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  const name = sql.bind(fullName, 'text');
  return sql.statement(`WITH gone AS (
      DELETE FROM metadata.deleted_components
      WHERE tenant_id = ${tenant} AND type = ${sql.bind(type, 'text')} AND full_name = ${name} AND ${EXPIRED}
      RETURNING type),
    fields AS (
      DELETE FROM metadata.deleted_components USING gone
      WHERE tenant_id = ${tenant} AND gone.type = 'CustomObject' AND deleted_components.type = 'CustomField'
        AND starts_with(full_name, ${name} || '.'))
    SELECT count(*)::int AS count FROM gone`);
}

/** Removes up to so many rows that companions of records keep about an object. */
export function forgetRowsSql(schema: string, companion: string, object: string, take: number): Statement {
  const sql = new Sql();
  const table = `${schema}.${companion}`;
  return sql.statement(`WITH gone AS (
      DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM ${table} WHERE object = ${sql.bind(object, 'text')} LIMIT ${sql.bind(take, 'int')}))
      RETURNING 1)
    SELECT count(*)::int AS count FROM gone`);
}
