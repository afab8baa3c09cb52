/** Values of a body in statements: the records that its references name, and what differs from what is stored. */
import type { Violation } from '../../../lib/errors/platform-error.ts';
import { typeOf } from '../../../lib/schema/field-types/registry.ts';
import { keyForm } from '../../../lib/schema/matching.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { columnName, columnType, reachSql, table } from '../sql.ts';
import { assertFresh } from '../tenants.ts';
import { mayBeSeveral, referenceNotFound } from './body.ts';
import { deniedParentsSql, parentDenied } from './sharing.ts';
import type { Given, Referred, Write } from './write.ts';

/** SQL of the id of the record that a reference names; NULL when there is none that the user can see, or more than one. */
export function lookupSql({ view, schema }: Pick<Write, 'view' | 'schema'>, sql: Sql, item: Given): string {
  const found = item.lookup!.targets.map(({ object, by, value }) => {
    const named = `SELECT t."id" FROM ${table(schema, object.apiName)} t WHERE ${sameKey(`t.${columnName(by)}`, sql.bind(value, typeOf(by).bindType), by)}${
      item.field.apiName === 'ownerId' ? ' AND t."active" IS NOT FALSE' : ''
    } AND ${reachSql(view, sql, object.apiName, 'read', 't')}`;
    if (!mayBeSeveral(by)) return `(${named} LIMIT 1)`;
    return `(SELECT CASE WHEN count(*) = 1 THEN (array_agg(n."id"))[1] END FROM (${named} LIMIT 2) n)`;
  });
  if (found.length < 2) return found[0] ?? 'NULL::uuid';
  return `COALESCE(${found.join(', ')})`;
}

/** CTE r, which looks up all references among `given`. */
export function referredSql(write: Write, sql: Sql, given: readonly Given[]): { cte: string; ids: Referred } {
  const lookups = given.filter((item) => item.lookup);
  const columns = lookups.map((item, index) => `${lookupSql(write, sql, item)} AS r${index}`);
  return {
    cte: `r AS MATERIALIZED (SELECT ${columns.join(', ') || '1 AS none'})`,
    ids: new Map(lookups.map((item, index) => [item, `r.r${index}`])),
  };
}

/** Equality of a column with a bound value, as the unique index of the field has it. */
export const sameKey = (column: string, value: string, field: FieldMeta): string =>
  `${keyForm(field, column)} = ${boundKey(value, field)}`;

/** A bound value as the unique index of its field would hold it: the column's type says whose upper and lower case. */
export const boundKey = (value: string, field: FieldMeta): string => keyForm(field, `(${value}::${columnType(field)})`);

/** SQL boolean: a value is another than the one that is stored. */
export const differsSql = (field: FieldMeta, column: string, value: string): string =>
  typeOf(field).needsTextComparison
    ? `(${column})::text IS DISTINCT FROM (${value})::text`
    : `${column} IS DISTINCT FROM ${value}`;

/**
 * SQL of two columns: the id that a reference was found to name, and whether a value differs from that of the row `o`.
 * What the row refers to by this id it may go on referring to, whoever can see it.
 */
export const comparedSql = (sql: Sql, item: Given, ids: Referred): string => {
  const { field, value } = item;
  const column = `o.${columnName(field)}`;
  const given = `${sql.bind(value, typeOf(field).bindType)}::${columnType(field)}`;
  const found = ids.get(item);
  if (found === undefined) return `NULL, ${differsSql(field, column, given)}`;
  const id = `coalesce(${found}, CASE WHEN ${column} = ${given} THEN ${column} END)`;
  return `${id}, ${column} IS DISTINCT FROM ${id}`;
};

/** Reads the columns of comparedSql: values as they will be stored, and those that change the record. */
export function settledIn(
  { invalid }: Write,
  given: readonly Given[],
  row: readonly unknown[],
): Pick<Write, 'given' | 'changed'> {
  const settled = given.map((item, index) =>
    item.lookup ? { ...item, value: row[index * 2] as string | null, lookup: null } : item,
  );
  for (const [index, item] of given.entries())
    if (item.lookup && row[index * 2] === null) invalid.push(referenceNotFound(item));
  return { given: settled, changed: settled.filter((_, index) => row[index * 2 + 1] === true) };
}

/** Off the success path only: there the statement of the write finds them itself. */
export async function missingReferences(write: Write): Promise<Violation[]> {
  const sql = new Sql();
  const { cte, ids } = referredSql(write, sql, write.given);
  if (ids.size === 0) return [];
  const deniedParents = deniedParentsSql(write, sql, ids, null) ?? 'false';
  const { rows } = await write.tx.arrays(
    sql.statement(
      `WITH ${cte}
      SELECT s.metadata_version, s.access_version, ${[...ids.values()].map((id) => `${id} IS NOT NULL`).join(', ')}, ${deniedParents} FROM ${write.schema}._state s, r`,
    ),
  );
  const row = rows[0]!;
  assertFresh(write.view, row[0], row[1]);
  if (row.at(-1) === true) throw parentDenied(); // permission comes before content
  return [...ids.keys()].filter((_, index) => row[2 + index] === false).map(referenceNotFound);
}
