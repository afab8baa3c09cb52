/** Statements about what has been made ahead of a deployment. */
import { identifier, literal } from '../../../lib/values/sql-text.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { AHEAD_NAMES, type AheadStep } from '../physical/ahead.ts';

export interface Made extends Pick<AheadStep, 'kind' | 'table' | 'name'> {
  /** False: an index that is half built, a foreign key that has not been validated. */
  readonly whole: boolean;
}

/** All of it in the tenant's schema, which is quoted. */
const madeSql = (schema: string): Statement => ({
  text: `WITH t AS (SELECT oid, relname::text AS name FROM pg_class
      WHERE relnamespace = ${literal(schema)}::regnamespace AND relkind = 'r')
    SELECT 'column' AS kind, t.name AS "table", a.attname::text AS name, true AS whole
      FROM t JOIN pg_attribute a ON a.attrelid = t.oid
      WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attname::text ~ '${AHEAD_NAMES}'
    UNION ALL SELECT 'index', t.name, c.relname::text, i.indisvalid
      FROM t JOIN pg_index i ON i.indrelid = t.oid JOIN pg_class c ON c.oid = i.indexrelid
      WHERE c.relname::text ~ '${AHEAD_NAMES}'
    UNION ALL SELECT 'key', t.name, o.conname::text, o.convalidated
      FROM t JOIN pg_constraint o ON o.conrelid = t.oid
      WHERE o.contype = 'f' AND o.conname::text ~ '${AHEAD_NAMES}'`,
});

export const readMade = (tx: Tx): Promise<Made[]> => tx.all<Made>(madeSql(tx.schema));

/** Names of what can be used. */
export const usable = (made: readonly Made[]): ReadonlySet<string> =>
  new Set(made.filter(({ whole }) => whole).map(({ name }) => name));

/** Those of the tables that have so many bytes. */
export const largeTablesSql = (schema: string, tables: readonly string[], bytes: number): Statement => ({
  text: `SELECT relname::text AS name FROM pg_class
    WHERE relnamespace = ${literal(schema)}::regnamespace AND relname = ANY ($1) AND pg_relation_size(oid) >= $2`,
  values: [tables, bytes],
});

/** How many bytes the values of these tables take together. */
export const bytesSql = (schema: string, tables: readonly string[]): Statement => ({
  text: `SELECT coalesce(sum(pg_relation_size(oid) + coalesce(pg_relation_size(nullif(reltoastrelid, 0)), 0)), 0)::float8
      AS bytes
    FROM pg_class WHERE relnamespace = ${literal(schema)}::regnamespace AND relname = ANY ($1)`,
  values: [tables],
});

/** Takes tables away from autovacuum and from those who make indexes; readers and writers go on. */
export const keepUpkeepOutSql = (schema: string, tables: readonly string[]): string =>
  `LOCK TABLE ${tables.map((table) => `${schema}.${identifier(table)}`).join(', ')} IN SHARE UPDATE EXCLUSIVE MODE`;

/** Foreign keys and columns that go, a statement per table. */
export function dropSql(schema: string, made: readonly Made[]): [table: string, sql: string][] {
  const parts = (all: readonly Made[]): string[] => [
    ...all.filter(({ kind }) => kind === 'key').map(({ name }) => `DROP CONSTRAINT IF EXISTS ${identifier(name)}`),
    ...all.filter(({ kind }) => kind === 'column').map(({ name }) => `DROP COLUMN IF EXISTS ${identifier(name)}`),
  ];
  return [...Map.groupBy(made, ({ table }) => table)].flatMap(([table, all]): [string, string][] => {
    const actions = parts(all);
    return actions.length > 0 ? [[table, `ALTER TABLE ${schema}.${identifier(table)} ${actions.join(', ')}`]] : [];
  });
}

export const dropIndexSql = (schema: string, name: string, concurrently = false): string =>
  `DROP INDEX ${concurrently ? 'CONCURRENTLY ' : ''}IF EXISTS ${schema}.${identifier(name)}`;
