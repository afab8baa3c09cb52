/** Values of a body in statements: the records that its references name, and what differs from what is stored. */
import type { Violation } from '../../../lib/errors/platform-error.ts';
import { typeOf } from '../../../lib/schema/field-types/registry.ts';
import { keyForm } from '../../../lib/schema/matching.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { type Placeholders, Sql } from '../../../mixins/database/sql.ts';
import { columnName, columnType, reachSql, table } from '../sql.ts';
import { assertFresh } from '../tenants.ts';
import { VERSION_COLUMNS, type Versions, type View } from '../view.ts';
import { mayBeSeveral, referenceNotFound } from './body.ts';
import { deniedParentsSql, parentDenied } from './sharing.ts';
import type { FieldValue, ResolvedReferences, Write } from './write.ts';

/**
 * SQL of the id of the record that a reference names; NULL when there is none that the user can see, or more than one.
 */
export function lookupSql(
  view: View,
  schema: string,
  { of, constant }: Placeholders<FieldValue | undefined>,
  item: FieldValue,
): string {
  const found = (item.lookup?.targets ?? []).map(({ object, by }, index) => {
    const value = of(namedBy(index), typeOf(by).bindType);
    const sameAs = sameKey(`t.${columnName(by)}`, value, by);
    const active = item.field.apiName === 'ownerId' ? ' AND t."active" IS NOT FALSE' : '';
    const named = `SELECT t."id" FROM ${table(schema, object.apiName)} t
      WHERE ${sameAs}${active} AND ${reachSql(view, { bind: constant }, object.apiName, 'read', 't')}`;
    if (!mayBeSeveral(by)) return `(${named} LIMIT 1)`;
    return `(SELECT CASE WHEN count(*) = 1 THEN (array_agg(named."id"))[1] END FROM (${named} LIMIT 2) named)`;
  });
  if (found.length < 2) return found[0] ?? 'NULL::uuid';
  return `COALESCE(${found.join(', ')})`;
}

/** The value that names the record in the target with this index. */
const namedBy =
  (index: number) =>
  (item: FieldValue | undefined): unknown =>
    item?.lookup?.targets[index]?.value;

/** Values that name records. */
export const referencesIn = (given: readonly FieldValue[]): readonly FieldValue[] =>
  given.filter((item) => item.lookup);

/** CTE refs, which looks up all references among `given`: ref0, ref1 and so on. `many`: for each row of input. */
export function referencesSql(
  { view, unit }: Write,
  given: readonly FieldValue[],
  placeholders: (item: FieldValue) => Placeholders<FieldValue | undefined>,
  many = false,
): { cte: string; ids: ResolvedReferences } {
  const lookups = referencesIn(given);
  const columns = lookups.map(
    (item, index) => `${lookupSql(view, unit.schema, placeholders(item), item)} AS ref${index}`,
  );
  return {
    cte: many
      ? `refs AS MATERIALIZED (SELECT ${['input.n', ...columns].join(', ')} FROM input)`
      : `refs AS MATERIALIZED (SELECT ${columns.join(', ') || '1 AS none'})`,
    ids: new Map(lookups.map((item, index) => [item, `refs.ref${index}`])),
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

/** How given values compare with the stored ones, in the order of `given`. */
export interface Comparison {
  /** The ids that references were found to name; null for one that names none, and for other values. */
  readonly refIds: readonly (string | null)[];
  readonly differs: readonly boolean[];
}

/**
 * SQL of the columns of Comparison, for the row `alias`. A reference of the row may keep the id that
 * it has, even when the user cannot see that record.
 */
export function comparisonSql(sql: Sql, given: readonly FieldValue[], ids: ResolvedReferences, alias: string): string {
  const refIds: string[] = [];
  const differs: string[] = [];
  for (const item of given) {
    const { field, value } = item;
    const column = `${alias}.${columnName(field)}`;
    const bound = `${sql.bind(value, typeOf(field).bindType)}::${columnType(field)}`;
    const found = ids.get(item);
    if (found === undefined) {
      refIds.push('NULL');
      differs.push(differsSql(field, column, bound));
      continue;
    }
    const id = `coalesce(${found}, CASE WHEN ${column} = ${bound} THEN ${column} END)`;
    refIds.push(id);
    differs.push(`${column} IS DISTINCT FROM ${id}`);
  }
  return `ARRAY[${refIds.join(', ')}]::uuid[] AS "refIds", ARRAY[${differs.join(', ')}]::boolean[] AS differs`;
}

/** Values as they will be stored, and those that change the record. */
export function resolveValues(
  { invalid }: Write,
  given: readonly FieldValue[],
  { refIds, differs }: Comparison,
): Pick<Write, 'given' | 'changed'> {
  const resolved = given.map((item, index): FieldValue => {
    if (!item.lookup) return item;
    const id = refIds[index] ?? null;
    if (id === null) invalid.push(referenceNotFound(item));
    return { ...item, value: id, lookup: null };
  });
  return { given: resolved, changed: resolved.filter((_, index) => differs[index] === true) };
}

/** SQL of a boolean[] column: which references name a record, in the order of `ids`. */
export const foundSql = (ids: ResolvedReferences): string =>
  `ARRAY[${[...ids.values()].map((id) => `${id} IS NOT NULL`).join(', ')}]::boolean[]`;

/** The violations of references that name no record, as foundSql says. */
export const notFoundIn = (references: readonly FieldValue[], found: readonly boolean[]): Violation[] =>
  references.filter((_, index) => found[index] === false).map(referenceNotFound);

/** Off the success path only: there the statement of the write finds them itself. */
export async function missingReferences(write: Write): Promise<Violation[]> {
  const { view, unit } = write;
  const sql = new Sql();
  const { cte, ids } = referencesSql(write, write.given, (item) => sql.for(item));
  if (ids.size === 0) return [];
  const deniedParents = deniedParentsSql(write, sql, ids, null) ?? 'false';
  const row = await unit.tx.one<Versions & { found: boolean[]; denied: boolean }>(
    sql.statement(`WITH ${cte}
      SELECT ${VERSION_COLUMNS}, ${foundSql(ids)} AS found, ${deniedParents} AS denied
      FROM ${unit.schema}._state state, refs`),
  );
  assertFresh(view, row.metadataVersion, row.accessVersion);
  if (row.denied) throw parentDenied(); // permission comes before content
  return notFoundIn([...ids.keys()], row.found);
}
