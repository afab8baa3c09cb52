/** Statements that erase a tenant, and those about the proof. What only the owner of the database may do are functions. */
import type { TenantDeletion } from '../../../contracts/metadata.ts';
import { identifier } from '../../../lib/values/sql-text.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

/** Tenants whose erasure is due or has begun. */
export const DUE: Statement = {
  text: `SELECT id AS "tenantId", key FROM metadata.tenants WHERE delete_at <= now() OR erasing_since IS NOT NULL ORDER BY id`,
};

/** From here on there is no way back. No row: it was taken back meanwhile. */
export function beginSql(tenantId: string, deletionId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `WITH begun AS (
       UPDATE metadata.tenants SET erasing_since = coalesce(erasing_since, now())
       WHERE id = ${sql.bind(tenantId, 'uuid')} AND (delete_at <= now() OR erasing_since IS NOT NULL)
       RETURNING id, key, name, coalesce(delete_at, erasing_since) AS due_at),
     proof AS (
       INSERT INTO metadata.deletions (deletion_id, deleted, key, name, due_at)
       SELECT ${sql.bind(deletionId, 'uuid')}, id, key, name, due_at FROM begun ON CONFLICT (deleted) DO NOTHING)
     SELECT id FROM begun`,
  );
}

export function eraseRowsSql(tenantId: string, batch: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT metadata.erase_rows(${sql.bind(tenantId, 'uuid')}, ${sql.bind(batch, 'integer')}) AS removed`,
  );
}

/** The tables of the tenant's own schema; none when there is no schema any more. */
export function tablesSql(schema: string, take: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = ${sql.bind(schema, 'text')} AND c.relkind IN ('r', 'p') AND NOT c.relispartition
     ORDER BY c.relname LIMIT ${sql.bind(take, 'integer')}`,
  );
}

export const countSql = (schema: string, table: string): Statement => ({
  text: `SELECT count(*)::float8 AS rows FROM ${identifier(schema)}.${identifier(table)}`,
});

export const dropSql = (schema: string, table: string): string =>
  `DROP TABLE ${identifier(schema)}.${identifier(table)} CASCADE`;

export function eraseTenantSql(tenantId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT metadata.erase_tenant(${sql.bind(tenantId, 'uuid')}) AS "rolesRemoved"`);
}

export function findTracesSql(tenantId: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT tables, traces FROM metadata.find_traces(${sql.bind(tenantId, 'uuid')})`);
}

/** Adds to the numbers of the proof, in the transaction of what they count. */
export function noteRemovedSql(tenantId: string, removed: Readonly<Record<string, number>>): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE metadata.deletions SET removed = removed || (
       SELECT coalesce(jsonb_object_agg(key, coalesce((removed ->> key)::bigint, 0) + value::bigint), '{}')
       FROM jsonb_each_text(${sql.bind(JSON.stringify(removed), 'jsonb')}))
     WHERE deleted = ${sql.bind(tenantId, 'uuid')}`,
  );
}

export function noteRolesSql(tenantId: string, rolesRemoved: boolean): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE metadata.deletions SET roles_removed = ${sql.bind(rolesRemoved, 'boolean')}
     WHERE deleted = ${sql.bind(tenantId, 'uuid')}`,
  );
}

/** Proofs without an end, of tenants that are gone from the registry: the last look at them is missing. */
export const UNFINISHED: Statement = {
  text: `SELECT deleted AS "tenantId" FROM metadata.deletions proof
    WHERE finished_at IS NULL AND NOT EXISTS (SELECT FROM metadata.tenants WHERE id = proof.deleted)`,
};

/** The end, unless something is left. */
export function noteTracesSql(
  tenantId: string,
  tables: number,
  remaining: Readonly<Record<string, number>>,
): Statement {
  const sql = new Sql();
  const nothing = Object.keys(remaining).length === 0;
  return sql.statement(
    `UPDATE metadata.deletions SET tables_checked = ${sql.bind(tables, 'integer')},
       remaining = ${sql.bind(JSON.stringify(remaining), 'jsonb')},
       finished_at = CASE WHEN ${sql.bind(nothing, 'boolean')} THEN now() END
     WHERE deleted = ${sql.bind(tenantId, 'uuid')} AND finished_at IS NULL`,
  );
}

export function proofsSql(key: string | null, take: number): Statement {
  const sql = new Sql();
  const ofKey = key === null ? '' : `WHERE key = ${sql.bind(key, 'text')}`;
  return sql.statement(
    `SELECT deleted AS "tenantId", key, name, due_at AS "dueAt", begun_at AS "begunAt", finished_at AS "finishedAt",
       removed, roles_removed AS "rolesRemoved", tables_checked AS "tablesChecked", remaining
     FROM metadata.deletions ${ofKey} ORDER BY begun_at DESC, deletion_id DESC LIMIT ${sql.bind(take, 'integer')}`,
  );
}

const time = (text: string): string => formatTimestamp(Date.parse(text));

export const proofOf = (row: TenantDeletion): TenantDeletion => ({
  ...row,
  dueAt: time(row.dueAt),
  begunAt: time(row.begunAt),
  finishedAt: row.finishedAt && time(row.finishedAt),
});
