/** Pieces of SQL that several statements of this service share. Values are always bound, names always quoted. */

import { type RecordLevel, reach } from '../../lib/access/sharing.ts';
import { tenantSchema } from '../../lib/context.ts';
import { columnSql } from '../../lib/expression/formulas.ts';
import { conditionSql } from '../../lib/query/sql.ts';
import { typeOf } from '../../lib/schema/field-types/registry.ts';
import type { FieldMeta, ObjectMeta } from '../../lib/schema/snapshot.ts';
import { memoize, memoizeByName } from '../../lib/values/memoize.ts';
import { identifier, literal } from '../../lib/values/sql-text.ts';
import type { Sql } from '../../mixins/database/sql.ts';
import type { View } from './view.ts';

export const schemaOf = (tenantId: string): string => identifier(tenantSchema(tenantId));

export const table = (schema: string, objectApiName: string): string => `${schema}.${identifier(objectApiName)}`;

/** SQL boolean: the user reaches the row `alias` of an object at a level. `true` when they reach every record. */
export function reachSql(
  { access, tenantId }: Pick<View, 'access' | 'tenantId'>,
  { bind }: Pick<Sql, 'bind'>,
  objectApiName: string,
  level: RecordLevel,
  alias: string,
): string {
  const node = reach(access, objectApiName, level);
  return node === null ? 'true' : `(${conditionSql(node, alias, tenantSchema(tenantId), bind)}) IS TRUE`;
}

/** The type a value has in its column, such as `numeric(18,2)`; null: nothing is stored. */
export const columnType = memoize((field: FieldMeta): string | null => typeOf(field).columnType(field));

/** Fields that stand in the object's table. */
export const storedFields = memoize((object: ObjectMeta): readonly FieldMeta[] =>
  Object.values(object.fields).filter((field) => columnType(field) !== null),
);

/**
 * SQL (jsonb) of the values in `record`, which may be of another time, that the columns of the object take as they are
 * now: a deployment may have given a field another type since.
 */
export const fittingValues = (object: ObjectMeta, record: string): string => `(${record} - ARRAY(
    SELECT typed.name FROM unnest(${checkedColumns(object)}) typed (name, type)
    WHERE ${record} ->> typed.name IS NOT NULL AND NOT CASE WHEN typed.type = 'text[]'
      THEN jsonb_typeof(${record} -> typed.name) = 'array'
      ELSE erp.input_is_valid(${record} ->> typed.name, typed.type) END))`;

/** SQL of two arrays: the columns that do not take any text, and their types. */
const checkedColumns = memoize((object: ObjectMeta): string => {
  const typed = storedFields(object)
    .map((field) => [field.apiName, columnType(field) ?? ''] as const)
    .filter(([, type]) => CHECKED_TYPES.test(type));
  const list = (texts: readonly string[]): string => `ARRAY[${texts.map(literal).join(', ')}]::text[]`;
  return `${list(typed.map(([name]) => name))}, ${list(typed.map(([, type]) => type))}`;
});

const CHECKED_TYPES = /^(?:numeric|bigint|boolean|date|time|interval|uuid|text\[\])/;

/** Name of a field as a column, quoted. */
export const columnName = memoize((field: FieldMeta): string => identifier(field.apiName));

/** JSON value of a field of the row `alias`. */
export const outputOf = (alias: string, field: FieldMeta, ieee754Compatible = false): string =>
  typeOf(field).outputSql(columnSql(field, alias), field, ieee754Compatible);

/**
 * SQL of the JSON of the row `alias` with these fields, as PostgreSQL type json. A user's readable fields are one array
 * per snapshot and permission set, so this is put together once for all their writes.
 */
export const recordJson = (alias: string, fields: readonly FieldMeta[], ieee754Compatible = false): string =>
  (ieee754Compatible ? withTextDecimals : withNumbers)(fields, alias);

const recordForm = (ieee754Compatible: boolean) =>
  memoizeByName((fields: readonly FieldMeta[], alias) => {
    const columns = fields.map((field) => `${outputOf(alias, field, ieee754Compatible)} AS ${columnName(field)}`);
    return `(SELECT row_to_json(x) FROM (SELECT ${columns.join(', ')}) x)`;
  });
const withNumbers = recordForm(false);
const withTextDecimals = recordForm(true);

/** SQL (json) of what expressions read of the row `alias`: decimals come as text, for every digit of them counts. */
export const exactJson = (alias: string, fields: readonly FieldMeta[]): string =>
  fields.length > 0 ? recordJson(alias, fields, true) : "'{}'::json";

/** ETag of a record version. */
export const etagOf = (recordVersion: number): string => `"${recordVersion.toString(36)}"`;

/** A function takes 100 arguments at most. */
const PAIRS_PER_CALL = 40;

/** jsonb `{field: {from, to}}`, the form in which changes are kept. */
export function changesSql(
  fields: readonly FieldMeta[],
  from: (field: FieldMeta) => string,
  to: (field: FieldMeta) => string,
): string {
  const parts: string[] = [];
  for (let at = 0; at < fields.length; at += PAIRS_PER_CALL)
    parts.push(
      `jsonb_build_object(${fields
        .slice(at, at + PAIRS_PER_CALL)
        .map((field) => `${literal(field.apiName)}, jsonb_build_object('from', ${from(field)}, 'to', ${to(field)})`)
        .join(', ')})`,
    );
  return parts.join(' || ') || "'{}'::jsonb";
}
