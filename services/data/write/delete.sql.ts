/** The statements that delete a record: one that locks it, those that find what depends on it, one that removes all. */
import { LIMITS } from '../../../lib/limits.ts';
import { isMasterDetail } from '../../../lib/schema/field-types/registry.ts';
import { fieldOf, objectOf } from '../../../lib/schema/lookup.ts';
import type { ChildRelationship, FieldMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { identifier } from '../../../lib/values/sql-text.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { completeKeySql } from '../../../mixins/mutation/key.sql.ts';
import { changesSql, columnName, outputOf, reachSql, storedFields, table } from '../sql.ts';
import type { View } from '../view.ts';
import { CLAIM_COLUMNS, claimSql, IF_CLAIMED } from './checks.sql.ts';
import type { LockRow } from './checks.ts';
import { actorSql, parentLocksSql, type RelatedRecords } from './rollups.ts';
import { reachedSql } from './sharing.ts';
import { randomTrailIds, trailSql } from './trail.ts';
import type { ReachLevel, Write } from './write.ts';

/** Ids of records by their objects. */
export type Ids = ReadonlyMap<ObjectMeta, ReadonlySet<string>>;

export interface Link {
  readonly child: ObjectMeta;
  readonly field: FieldMeta;
  readonly onDelete: 'setNull' | 'restrict' | 'cascade';
}

/** How other objects refer to records of this one. A detail is deleted with its master unless that is forbidden. */
export function linksTo(view: View, object: ObjectMeta): Link[] {
  return object.childRelationships.flatMap((relationship: ChildRelationship): Link[] => {
    const child = objectOf(view.snapshot, relationship.objectApiName);
    const field = child && fieldOf(child, relationship.field);
    if (!child || !field) return [];
    const fallback = isMasterDetail(field) ? 'cascade' : 'setNull';
    return [{ child, field, onDelete: relationship.onDelete ?? field.onDelete ?? fallback }];
  });
}

/**
 * So many kinds of details, and so deep, have their other parents locked beforehand; beyond, writers may have to
 * repeat.
 */
const RELATED_LOCKED_MAX = 20;
const ALONG_LEVELS_MAX = 3;

/** Records that are deleted with those whose ids `ids` selects, according to the configuration. */
function deletedWith(write: Write, object: ObjectMeta, ids: string, level = 1): RelatedRecords[] {
  const links = linksTo(write.view, object).filter((link) => link.onDelete === 'cascade');
  return links.slice(0, RELATED_LOCKED_MAX).flatMap(({ child, field }) => {
    const those = `FROM ${table(write.unit.schema, child.apiName)} x WHERE x.${columnName(field)} IN (${ids})`;
    const further = level < ALONG_LEVELS_MAX ? deletedWith(write, child, `SELECT x."id" ${those}`, level + 1) : [];
    return [{ object: child.apiName, named: (reference) => `SELECT x.${identifier(reference)} ${those}` }, ...further];
  });
}

/** Result of lockForDeleteSql. */
export interface LockedRow extends LockRow {
  readonly reached: ReachLevel;
}

/** Claims the key and locks the record, and the parents of all that is deleted with it. */
export function lockForDeleteSql(write: Write): Statement {
  const { view, object, unit } = write;
  const sql = new Sql();
  const id = sql.bind(write.id, 'uuid');
  const parents = parentLocksSql(write, {
    object: object.apiName,
    id,
    changed: null,
    related: deletedWith(write, object, id).slice(0, RELATED_LOCKED_MAX),
    gate: IF_CLAIMED,
  });
  const ctes = [
    claimSql(write, sql),
    ...parents.ctes,
    `locked AS MATERIALIZED (SELECT * FROM ${table(unit.schema, object.apiName)} t
      WHERE "id" = ${id}${IF_CLAIMED}${parents.after} AND ${reachSql(view, sql, object.apiName, 'read', 't')}
      FOR UPDATE)`,
  ];
  return sql.statement(`WITH ${ctes.join(',\n')}
    SELECT ${CLAIM_COLUMNS}, locked."recordVersion", ${reachedSql(write, sql, 'locked', 'delete')} AS reached
    FROM state LEFT JOIN locked ON true${actorSql(write, sql.for(write), true)}`);
}

/** Child rows `t` that refer to the bound ids. */
const refersTo = (schema: string, sql: Sql, link: Link, ids: Iterable<string>): string =>
  `${table(schema, link.child.apiName)} t WHERE ${columnName(link.field)} = ANY(${sql.bind([...ids], 'uuid[]')})`;

/** Locks the child records that are deleted with those of `ids`, `max` at most; `visible` to the user or not. */
export function cascadeSql({ view, unit }: Write, link: Link, ids: Iterable<string>, max: number): Statement {
  const sql = new Sql();
  const visible = reachSql(view, sql, link.child.apiName, 'read', 't');
  return sql.statement(`SELECT "id", ${visible} AS visible
    FROM ${refersTo(unit.schema, sql, link, ids)} ORDER BY "id" LIMIT ${max} FOR UPDATE`);
}

/** How many child records forbid the deletion, and how many of these the user can see. */
export function dependentsSql({ view, unit }: Write, link: Link, ids: Iterable<string>, doomed: Ids): Statement {
  const sql = new Sql();
  const visible = reachSql(view, sql, link.child.apiName, 'read', 't');
  const rows = refersTo(unit.schema, sql, link, ids);
  const others = sql.bind([...(doomed.get(link.child) ?? [])], 'uuid[]');
  return sql.statement(`SELECT count(*)::int AS count, (count(*) FILTER (WHERE ${visible}))::int AS visible
    FROM ${rows} AND NOT "id" = ANY(${others})`);
}

/** Clears references of `child` to deleted records, and counts the records of these that the user can see. */
export function detachSql(
  write: Write,
  child: ObjectMeta,
  references: ReadonlyMap<FieldMeta, readonly string[]>,
  doomed: Ids,
): Statement {
  const { view, unit } = write;
  const sql = new Sql();
  const records = table(unit.schema, child.apiName);
  const bound = [...references].map(([field, ids]) => {
    const isDeleted = `t.${columnName(field)} = ANY(${sql.bind(ids, 'uuid[]')})`;
    return {
      isDeleted,
      set: `${columnName(field)} = CASE WHEN ${isDeleted} THEN NULL ELSE t.${columnName(field)} END`,
    };
  });
  const sets = [
    ...bound.map(({ set }) => set),
    '"recordVersion" = t."recordVersion" + 1',
    '"updatedAt" = statement_timestamp()',
    `"updatedById" = ${sql.bind(unit.request.userId, 'uuid')}`,
  ];
  const changes = changesSql(
    [...references.keys()],
    (field) => outputOf('former', field),
    (field) => outputOf('updated', field),
  );
  const ctes = [
    `former AS MATERIALIZED (SELECT * FROM ${records} t
      WHERE (${bound.map(({ isDeleted }) => isDeleted).join(' OR ')})
        AND NOT t."id" = ANY(${sql.bind([...(doomed.get(child) ?? [])], 'uuid[]')})
      ORDER BY t."id" FOR NO KEY UPDATE)`,
    `updated AS (UPDATE ${records} t SET ${sets.join(', ')} FROM former WHERE t."id" = former."id" RETURNING t.*)`,
    `change AS MATERIALIZED (SELECT updated."id" AS record_id, updated."recordVersion" AS record_version,
        0 AS position, ${randomTrailIds}, ${changes} AS changes
      FROM updated JOIN former ON former."id" = updated."id")`,
    ...trailSql(write, sql.for(write), child, { kind: 'update', from: 'change', transactionSize: countOf(doomed) }),
  ];
  return sql.statement(`WITH ${ctes.join(',\n')}
    SELECT count(*)::int FROM former t WHERE ${reachSql(view, sql, child.apiName, 'read', 't')}`);
}

/** Records in all. */
export const countOf = (ids: ReadonlyMap<unknown, ReadonlySet<string>>): number =>
  [...ids.values()].reduce((sum, of) => sum + of.size, 0);

interface Deletion {
  readonly deletedAt: Date;
  readonly restorableUntil: Date;
}

export const deletionAt = (deletedAt: Date): Deletion => ({
  deletedAt,
  restorableUntil: new Date(deletedAt.getTime() + LIMITS.recycle_bin_days * 86_400_000),
});

/**
 * Moves all records to the recycle bin: one statement for all objects, so that it does not matter who refers to whom.
 */
export function removeSql(
  write: Write,
  doomed: Ids,
  { deletedAt, restorableUntil }: Deletion,
  body: string,
): Statement {
  const { schema, key, request } = write.unit;
  const sql = new Sql();
  const user = sql.bind(request.userId, 'uuid');
  const root = sql.bind(write.id, 'uuid');
  const at = sql.bind(deletedAt.toISOString(), 'timestamptz');
  const until = sql.bind(restorableUntil.toISOString(), 'timestamptz');
  let position = 0;
  const ctes = [...doomed].flatMap(([object, ids], index) => {
    const first = position;
    position += ids.size;
    const deleted = `deleted${index}`;
    const changes = changesSql(
      storedFields(object).filter((field) => !field.system),
      (field) => outputOf(deleted, field),
      () => 'NULL',
    );
    return [
      `${deleted} AS (DELETE FROM ${table(schema, object.apiName)}
        WHERE "id" = ANY(${sql.bind([...ids], 'uuid[]')}) RETURNING *)`,
      `binned${index} AS (INSERT INTO ${schema}._recycle_bin
          (object, record_id, root_id, record, record_version, deleted_at, deleted_by_id, restorable_until)
        SELECT ${sql.bind(object.apiName, 'text')}, ${deleted}."id", ${root}, to_jsonb(${deleted}),
          ${deleted}."recordVersion", ${at}, ${user}, ${until} FROM ${deleted})`,
      `change${index} AS MATERIALIZED (SELECT ${deleted}."id" AS record_id,
          ${deleted}."recordVersion" AS record_version, ${first} + (row_number() OVER ())::int - 1 AS position,
          ${randomTrailIds}, ${changes} AS changes
        FROM ${deleted})`,
      ...trailSql(write, sql.for(write), object, {
        kind: 'delete',
        from: `change${index}`,
        transactionSize: countOf(doomed),
        suffix: String(index),
      }),
    ];
  });
  const outcome = { status: '200', headers: "'{}'::jsonb", body: sql.bind(body, 'text') };
  ctes.push(`key_done AS (${completeKeySql(schema, key, sql.for(key).of, outcome)})`);
  return sql.statement(`WITH ${ctes.join(',\n')}\nSELECT count(*)::int FROM deleted0`);
}
