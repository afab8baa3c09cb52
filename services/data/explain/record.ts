/** A record with everything that sharing asks of it, read in one statement. */

import { criteriaOf } from '../../../lib/access/criteria.ts';
import { PARENTS_MAX, parentFields, type SharedRecord } from '../../../lib/access/sharing.ts';
import { storedReads } from '../../../lib/expression/formulas.ts';
import { objectOf } from '../../../lib/schema/lookup.ts';
import type { FieldMeta, ObjectMeta, Snapshot } from '../../../lib/schema/snapshot.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import { identifier, literal } from '../../../lib/values/sql-text.ts';

import { exactJson, table } from '../sql.ts';

/** SQL (json) of the row `alias` of an object as SharedRecord, its parents as well. */
export function sharedRecordSql(
  schema: string,
  snapshot: Snapshot,
  object: ObjectMeta,
  alias: string,
  path: readonly string[] = [],
): string {
  const parents = parentFields(object).flatMap((field) => {
    const parent = objectOf(snapshot, field.referenceTo[0]!);
    if (!parent || path.includes(parent.apiName) || path.length >= PARENTS_MAX) return [];
    const inner = `${alias}_${path.length}`;
    const row = sharedRecordSql(schema, snapshot, parent, inner, [...path, object.apiName]);
    return [
      `${literal(field.apiName)}, (SELECT ${row} FROM ${table(schema, parent.apiName)} ${inner} WHERE ${inner}."id" = ${alias}.${identifier(field.apiName)})`,
    ];
  });
  return `json_build_object('id', ${alias}."id", 'ownerId', ${alias}."ownerId",
    'values', ${exactJson(alias, criteriaFields(object))},
    'shares', (SELECT coalesce(json_agg(json_build_object('principalType', sh.principal_type, 'principalId', sh.principal_id, 'access', sh.access) ORDER BY sh.created_at, sh.share_id), '[]')
      FROM ${schema}._shares sh WHERE sh.record_id = ${alias}."id" AND sh.object = ${literal(object.apiName)}),
    'parents', json_build_object(${parents.join(', ')}))`;
}

/** Stored fields that the criteria of an object's sharing rules depend on, those of formulas among them. */
const criteriaFields = memoize((object: ObjectMeta): readonly FieldMeta[] => {
  const read = object.sharingRules.flatMap((rule) =>
    rule.criteria === null ? [] : criteriaOf(object, rule.criteria).fields,
  );
  const stored = new Set(read.flatMap((name) => [...storedReads(object.fields[name]!)]));
  return [...stored].map((name) => object.fields[name]!);
});

/** What sharedRecordSql answered. */
export const readSharedRecord = (text: unknown): SharedRecord => JSON.parse(text as string) as SharedRecord;
