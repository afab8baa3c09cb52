/** The statements that bring deleted records back. */
import { isMasterDetail, isReference, typeOf } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { literal } from '../../../lib/values/sql-text.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { completeKeySql } from '../../../mixins/mutation/key.sql.ts';
import { changesSql, columnName, fittingValues, outputOf, reachSql, recordJson, storedFields, table } from '../sql.ts';
import { defaultOf } from './body.ts';
import { CLAIM_COLUMNS, claimSql, IF_CLAIMED } from './checks.sql.ts';
import { countOf, type Ids, type Link } from './delete.sql.ts';
import { actorSql, parentLocksSql, type RelatedRecords } from './rollups.ts';
import { reachedSql } from './sharing.ts';
import { randomTrailIds, trailSql } from './trail.ts';
import type { Write } from './write.ts';

/** The row that a deleted record was: only what is still a field, and only values that its column still takes. */
export const formerRow = (schema: string, object: ObjectMeta, record: string): string =>
  `jsonb_populate_record(NULL::${table(schema, object.apiName)}, ${fittingValues(object, record)})`;

/** Claims the key and locks the deleted record; its columns are those of LockedRow. */
export function lockDeletedSql(write: Write): Statement {
  const { view, object, unit } = write;
  const sql = new Sql();
  return sql.statement(`WITH ${claimSql(write, sql)},
    bin AS MATERIALIZED (SELECT * FROM ${unit.schema}._recycle_bin
      WHERE object = ${sql.bind(object.apiName, 'text')} AND record_id = ${sql.bind(write.id, 'uuid')}
        AND restorable_until > now()${IF_CLAIMED} FOR UPDATE)
    SELECT ${CLAIM_COLUMNS}, locked.version AS "recordVersion", locked.reached
    FROM state LEFT JOIN (
      SELECT bin.record_version AS version, ${reachedSql(write, sql, 't', 'delete')} AS reached
      FROM bin, LATERAL ${formerRow(unit.schema, object, 'bin.record')} t
      WHERE ${reachSql(view, sql, object.apiName, 'read', 't')}) locked ON true${actorSql(write, sql.for(write), true)}`);
}

/** Locks everything that was deleted together with the record. */
export function deletionSql({ object, id, unit }: Write): Statement {
  const sql = new Sql();
  const bin = `${unit.schema}._recycle_bin`;
  return sql.statement(`SELECT root_id AS "rootId", object, record_id AS "recordId" FROM ${bin}
    WHERE root_id = (SELECT root_id FROM ${bin}
      WHERE object = ${sql.bind(object.apiName, 'text')} AND record_id = ${sql.bind(id, 'uuid')})
    ORDER BY object, record_id FOR UPDATE`);
}

/** Locks the records of a deletion that belong to the parents `ids`. */
export function deletedWithSql({ unit }: Write, rootId: string, link: Link, ids: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT record_id AS "recordId" FROM ${unit.schema}._recycle_bin
    WHERE root_id = ${sql.bind(rootId, 'uuid')} AND object = ${sql.bind(link.child.apiName, 'text')}
      AND record ->> ${literal(link.field.apiName)} = ANY(${sql.bind(ids, 'text[]')})
    ORDER BY record_id FOR UPDATE`);
}

/** Locks the parents whose rollups take the returning records in, in the order of all writers. Null: there are none. */
export function lockParentsSql(write: Write, returning: Ids): Statement | null {
  const sql = new Sql();
  const related = [...returning].map(
    ([object, ids]): RelatedRecords => ({
      object: object.apiName,
      named: (
        reference,
      ) => `SELECT (bin.record ->> ${literal(reference)})::uuid FROM ${write.unit.schema}._recycle_bin bin
        WHERE bin.object = ${sql.bind(object.apiName, 'text')}
          AND bin.record_id = ANY(${sql.bind([...ids], 'uuid[]')})`,
    }),
  );
  const { ctes, after } = parentLocksSql(write, {
    object: write.object.apiName,
    id: null,
    changed: new Set(),
    related,
    gate: '',
  });
  return ctes.length > 0 ? sql.statement(`WITH ${ctes.join(',\n')} SELECT 1 WHERE true${after}`) : null;
}

export const referencesOf = (object: ObjectMeta): FieldMeta[] =>
  storedFields(object).filter((field) => isReference(field) && !field.system);

/** A record does not come back without what this reference names; others are cleared when that is gone. */
export const isNeeded = (field: FieldMeta): boolean =>
  field.required || isMasterDetail(field) || field.onDelete === 'cascade';

export interface GoneRow {
  /** Of `asked`. */
  readonly index: number;
  /** Ids that name no record; null: all are there. */
  readonly refs: readonly string[] | null;
  /** The record that is restored refers to one of them itself. */
  readonly ofRoot: boolean;
}

/** Missing targets of the returning records, one row for each reference field asked for. Locks the present ones. */
export function goneSql(
  write: Write,
  returning: Ids,
  asked: readonly { readonly object: ObjectMeta; readonly field: FieldMeta; readonly ids: ReadonlySet<string> }[],
): Statement {
  const { schema } = write.unit;
  const sql = new Sql();
  const idsByName = new Map([...returning].map(([object, ids]) => [object.apiName, ids]));
  const parts = asked.map(({ object, field, ids }, index) => {
    const target = field.referenceTo[0] ?? '';
    const restoredIds = sql.bind([...(idsByName.get(target) ?? [])], 'uuid[]');
    const value = `bin.record ->> ${literal(field.apiName)}`;
    return `SELECT ${index} AS index, array_agg(named.ref::text) AS refs, bool_or(named.of_root) AS "ofRoot" FROM (
        SELECT (${value})::uuid AS ref, bool_or(bin.record_id = ${sql.bind(write.id, 'uuid')}) AS of_root
        FROM ${schema}._recycle_bin bin
        WHERE bin.object = ${sql.bind(object.apiName, 'text')} AND bin.record_id = ANY(${sql.bind([...ids], 'uuid[]')})
          AND ${value} IS NOT NULL GROUP BY 1) named
      WHERE NOT named.ref = ANY(${restoredIds})
        AND NOT EXISTS (SELECT FROM ${table(schema, target)} t WHERE t."id" = named.ref FOR KEY SHARE)`;
  });
  return sql.statement(parts.join('\nUNION ALL '));
}

/** Moves all records back: one statement for all objects, so that it does not matter who refers to whom. */
export function restoreSql(write: Write, returning: Ids, gone: ReadonlyMap<FieldMeta, readonly string[]>): Statement {
  const { schema, request } = write.unit;
  const sql = new Sql();
  const user = sql.bind(request.userId, 'uuid');
  let position = 0;
  const ctes = [...returning].flatMap(([object, ids], index) => {
    const first = position;
    position += ids.size;
    const fields = storedFields(object);
    const [bin, row] = [`bin${index}`, `restored${index}`];
    const values = fields.map((field) => valueSql(write, sql, field, user, gone.get(field) ?? []));
    const changes = changesSql(
      fields.filter((field) => !field.system),
      // Values that could not come back are gone with the restore.
      (field) =>
        `CASE WHEN ${row}.${columnName(field)} IS NULL
          THEN nullif(${bin}.record -> ${literal(field.apiName)}, 'null') END`,
      (field) => outputOf(row, field),
    );
    return [
      `${bin} AS (DELETE FROM ${schema}._recycle_bin
        WHERE object = ${sql.bind(object.apiName, 'text')} AND record_id = ANY(${sql.bind([...ids], 'uuid[]')})
        RETURNING record_id, record, record_version)`,
      `${row} AS (INSERT INTO ${table(schema, object.apiName)} (${fields.map(columnName).join(', ')})
        SELECT ${values.join(', ')} FROM ${bin} bin, LATERAL ${formerRow(schema, object, 'bin.record')} former
        RETURNING *)`,
      `change${index} AS MATERIALIZED (SELECT ${row}."id" AS record_id, ${row}."recordVersion" AS record_version,
          ${first} + (row_number() OVER (ORDER BY ${row}."id" <> ${sql.bind(write.id, 'uuid')}))::int - 1 AS position,
          ${randomTrailIds}, ${changes} AS changes
        FROM ${row} JOIN ${bin} ON ${bin}.record_id = ${row}."id")`,
      ...trailSql(write, sql.for(write), object, {
        kind: 'restore',
        from: `change${index}`,
        transactionSize: countOf(returning),
        suffix: String(index),
      }),
    ];
  });
  return sql.statement(`WITH ${ctes.join(',\n')}\nSELECT count(*)::int FROM restored0`);
}

/** Value of a column of the row `former`; `bin` is its row in the recycle bin. */
function valueSql({ unit }: Write, sql: Sql, field: FieldMeta, user: string, gone: readonly string[]): string {
  const column = `former.${columnName(field)}`;
  if (gone.length) return `CASE WHEN ${column} = ANY(${sql.bind(gone, 'uuid[]')}) THEN NULL ELSE ${column} END`;
  switch (field.system ? field.apiName : '') {
    case 'recordVersion':
      return 'bin.record_version + 1';
    case 'updatedAt':
      return 'statement_timestamp()';
    case 'updatedById':
      return user;
  }
  // A field that became required meanwhile has given its default to the records that were there.
  const fallback = field.required && !isReference(field) ? defaultOf(field) : null;
  if (fallback === null || fallback === undefined) return column;
  const parsed = typeOf(field).parseInput(fallback, field, '', unit.budget);
  return parsed.ok ? `coalesce(${column}, ${sql.bind(parsed.value, typeOf(field).bindType)})` : column;
}

/** The record as it is now. */
export function restoredSql({ object, id, access, call, unit }: Write): Statement {
  const sql = new Sql();
  const json = recordJson('t', access.readable, call.ieee754Compatible);
  return sql.statement(`SELECT t."recordVersion", ${json}::text AS body
    FROM ${table(unit.schema, object.apiName)} t WHERE t."id" = ${sql.bind(id, 'uuid')}`);
}

export function completeSql({ unit }: Write, headers: object, body: string): Statement {
  const sql = new Sql();
  const outcome = {
    status: '201',
    headers: sql.bind(JSON.stringify(headers), 'jsonb'),
    body: sql.bind(body, 'text'),
  };
  return sql.statement(completeKeySql(unit.schema, unit.key, sql.for(unit.key).of, outcome));
}

/** How many of these records the user can see. */
export function visibleCountSql({ view, unit }: Write, object: ObjectMeta, ids: readonly string[]): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT count(*)::int FROM ${table(unit.schema, object.apiName)} t
    WHERE t."id" = ANY(${sql.bind(ids, 'uuid[]')}) AND ${reachSql(view, sql, object.apiName, 'read', 't')}`);
}
