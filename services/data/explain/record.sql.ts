/** The statement that reads a record with everything that decides about its sharing, and about its transitions. */

import { criteriaOf } from '../../../lib/access/criteria.ts';
import { PARENTS_MAX, parentFields, type SharedRecord } from '../../../lib/access/sharing.ts';
import { tenantSchema } from '../../../lib/context.ts';
import { storedInputsOf } from '../../../lib/expression/formulas.ts';
import { objectOf, referredObject, requireField } from '../../../lib/schema/lookup.ts';
import { fieldsThatShare } from '../../../lib/schema/shares-through.ts';
import type { FieldMeta, ObjectMeta, Snapshot } from '../../../lib/schema/snapshot.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import { identifier, literal } from '../../../lib/values/sql-text.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { exactJson, reachSql, table } from '../sql.ts';
import { VERSION_COLUMNS, type Versions, type View } from '../view.ts';
import { lookupSql } from '../write/references.ts';
import { formerRow } from '../write/restore.sql.ts';
import { deniedParentsSql, reachedSql } from '../write/sharing.ts';
import type { FieldValue, ReachLevel } from '../write/write.ts';

interface ExplainedRecord {
  readonly record: SharedRecord;
  /** Values of the fields that decide about transitions. */
  readonly stored: Readonly<Record<string, unknown>>;
}

/** The record is null when there is none that the caller can read. */
export type ExplainedRow = Versions & (ExplainedRecord | { readonly [K in keyof ExplainedRecord]: null });

export function explainedRecordStatement(
  view: View,
  object: ObjectMeta,
  id: string,
  fields: readonly FieldMeta[],
): Statement {
  const sql = new Sql();
  const schema = identifier(tenantSchema(view.tenantId));
  return sql.statement(`SELECT ${VERSION_COLUMNS}, found.record, found.stored
    FROM ${schema}._state state
    LEFT JOIN (
      SELECT ${sharedRecordSql(schema, view.snapshot, object, 't')} AS record, ${exactJson('t', fields)} AS stored
      FROM ${table(schema, object.apiName)} t
      WHERE t."id" = ${sql.bind(id, 'uuid')} AND ${reachSql(view, sql, object.apiName, 'read', 't')}) found ON true`);
}

/** How far sharing lets the user go with a deleted record; null: they cannot see one. */
export type DeletedRow = Versions & { readonly reached: ReachLevel | null };

export function deletedStatement(view: View, object: ObjectMeta, id: string): Statement {
  const sql = new Sql();
  const schema = identifier(tenantSchema(view.tenantId));
  return sql.statement(`SELECT ${VERSION_COLUMNS}, found.reached
    FROM ${schema}._state state
    LEFT JOIN (
      SELECT ${reachedSql({ view, object }, sql, 't', 'delete')} AS reached
      FROM ${schema}._recycle_bin bin, LATERAL ${formerRow(schema, object, 'bin.record')} t
      WHERE bin.object = ${literal(object.apiName)} AND bin.record_id = ${sql.bind(id, 'uuid')}
        AND bin.restorable_until > now() AND ${reachSql(view, sql, object.apiName, 'read', 't')}) found ON true`);
}

/** References that a request sets in one record. */
export interface GivenReferences {
  readonly object: ObjectMeta;
  /** null: a new record. */
  readonly id: string | null;
  /** `named`: null for a value that can name no record. */
  readonly given: readonly { readonly field: FieldMeta; readonly named: FieldValue | null }[];
}

/**
 * Whether each of the references names a record that the user can read, and whether one puts its record under another
 * parent that the user may read but not edit.
 */
export type ReferencedRow = Versions & { readonly seen: readonly boolean[]; readonly misplaced: boolean };

export function referencedStatement(view: View, references: readonly GivenReferences[]): Statement {
  const sql = new Sql();
  const schema = identifier(tenantSchema(view.tenantId));
  const seen: string[] = [];
  const misplaced = references.flatMap(({ object, id, given }) => {
    const ids = new Map<FieldValue, string>();
    for (const { named } of given) {
      const found = named && lookupSql(view, schema, sql.for(named), named);
      if (named && found) ids.set(named, found);
      seen.push(found ? `${found} IS NOT NULL` : 'false');
    }
    const before = ({ field }: FieldValue): string => `(SELECT r.${identifier(field.apiName)}
      FROM ${table(schema, object.apiName)} r WHERE r."id" = ${sql.bind(id, 'uuid')})`;
    return deniedParentsSql({ view, object }, sql, ids, id === null ? null : before) ?? [];
  });
  return sql.statement(`SELECT ${VERSION_COLUMNS}, ARRAY[${seen.join(', ')}]::boolean[] AS seen,
    ${misplaced.join(' OR ') || 'false'} AS misplaced FROM ${schema}._state state`);
}

/** SQL (json) of the row `alias` of an object as SharedRecord, with its parents. */
export function sharedRecordSql(
  schema: string,
  snapshot: Snapshot,
  object: ObjectMeta,
  alias: string,
  path: readonly string[] = [],
): string {
  const parents = parentFields(object).flatMap((field) => {
    const [parentName] = field.referenceTo;
    const parent = parentName === undefined ? undefined : objectOf(snapshot, parentName);
    if (!parent || path.includes(parent.apiName) || path.length >= PARENTS_MAX) return [];
    const inner = `${alias}_${path.length}`;
    const row = sharedRecordSql(schema, snapshot, parent, inner, [...path, object.apiName]);
    return [
      `${literal(field.apiName)}, (
        SELECT ${row} FROM ${table(schema, parent.apiName)} ${inner}
        WHERE ${inner}."id" = ${alias}.${identifier(field.apiName)})`,
    ];
  });
  const owners = fieldsThatShare(object).flatMap(({ field, toUser }) => {
    if (toUser) return [];
    const inner = `${alias}_o`;
    return [
      `${literal(field.apiName)}, (
        SELECT ${inner}."ownerId" FROM ${table(schema, referredObject(field))} ${inner}
        WHERE ${inner}."id" = ${alias}.${identifier(field.apiName)})`,
    ];
  });
  return `json_build_object('id', ${alias}."id", 'ownerId', ${alias}."ownerId",
    'values', ${exactJson(alias, ruleFields(object))},
    'owners', json_build_object(${owners.join(', ')}),
    'shares', (
      SELECT coalesce(json_agg(
        json_build_object(
          'principalType', share.principal_type, 'principalId', share.principal_id, 'access', share.access)
        ORDER BY share.created_at, share.share_id), '[]')
      FROM ${schema}._shares share
      WHERE share.record_id = ${alias}."id" AND share.object = ${literal(object.apiName)}),
    'parents', json_build_object(${parents.join(', ')}))`;
}

/** Stored fields that an object's sharing rules depend on, those of formulas among them. */
const ruleFields = memoize((object: ObjectMeta): readonly FieldMeta[] => {
  const read = object.sharingRules.flatMap((rule) =>
    rule.criteria === null ? [] : criteriaOf(object, rule.criteria).fields,
  );
  const stored = new Set(read.flatMap((name) => [...storedInputsOf(requireField(object, name))]));
  for (const { field, toUser } of fieldsThatShare(object)) if (toUser) stored.add(field.apiName);
  return [...stored].map((name) => requireField(object, name));
});
