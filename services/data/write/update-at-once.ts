/**
 * Changing a record by one statement, where nothing is left to be decided between the lock and the change. It does
 * everything or nothing, and after nothing the steps of update.ts find out why: whatever is refused or repeated, and all
 * waiting for others, is theirs.
 */

import type { OperationReply } from '../../../lib/operation.ts';
import { typeOf } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { claimKeySql } from '../../../mixins/mutation/key.sql.ts';

import { changesSql, columnName, columnType, etagOf, outputOf, reachSql, storedFields, table } from '../sql.ts';
import { assertFresh } from '../tenants.ts';
import { controlledFields } from './body.ts';
import { freshSql, stateSql } from './checks.ts';
import { mayAskDuplicates } from './duplicates.ts';
import { isBehindAnother } from './failures.ts';
import { typedFields } from './record-types.ts';
import { differsSql } from './references.ts';
import { hasFollowers } from './rollups.ts';
import { hasRules } from './rules.ts';
import { newTrailIds, trailSql } from './trail.ts';
import { answerSql, keySql, readValues } from './update.ts';
import type { Write } from './write.ts';

/** A twin that holds the key may wait for the record: whoever has the record soon lets go of it. */
const KEY_PATIENCE_MS = 100;

/** Null: nothing was done. */
export async function updateAtOnce(write: Write): Promise<OperationReply | null> {
  if (!leavesNothingToDecide(write)) return null;
  readValues(write);
  if (!isPlain(write)) return null;
  const row = await write.commit(statementOf(write)).then(
    ({ rows }) => rows[0] as [unknown, unknown, number, string, number],
    (error: unknown) => {
      if (isBehindAnother(error)) return null;
      throw error;
    },
  );
  if (!row) return null;
  const [metadataVersion, accessVersion, claimed, body, version] = row;
  assertFresh(write.view, metadataVersion, accessVersion);
  if (claimed === 0) return null;
  return { status: 200, headers: { ETag: etagOf(version) }, body: Buffer.from(body) };
}

const leavesNothingToDecide = (write: Write): boolean =>
  write.object.apiName !== 'User' && write.access.permission.update && !hasRules(write.object) && !hasFollowers(write);

/** The body is in order by itself, whatever is stored. */
const isPlain = (write: Write): boolean =>
  write.given.length > 0 &&
  write.invalid.length === 0 &&
  write.denied.length === 0 &&
  !mayAskDuplicates(write, write.given) &&
  write.given.every((item) => item.lookup === null) &&
  typedFields(write.object, write.given).length === 0 &&
  controlledFields(write.object, write.given).length === 0;

function statementOf(write: Write) {
  const { view, object, schema, key, request, given, ifMatch, external } = write;
  const sql = new Sql();
  const records = table(schema, object.apiName);
  const id = sql.bind(write.id, 'uuid');
  const user = sql.bind(request.userId, 'uuid');
  const values = new Map(
    given.map(({ field, value }) => [
      field.apiName,
      `${sql.bind(value, typeOf(field).bindType)}::${columnType(field)}`,
    ]),
  );
  const kept: Readonly<Record<string, string>> = {
    recordVersion: '(o."recordVersion" + 1)',
    updatedAt: 'statement_timestamp()::timestamptz(3)',
    updatedById: user,
  };
  const after = (field: FieldMeta): string =>
    `${values.get(field.apiName) ?? kept[field.apiName] ?? `o.${columnName(field)}`} AS ${columnName(field)}`;
  const differs = ({ field }: Write['given'][number]): string =>
    differsSql(field, `o.${columnName(field)}`, values.get(field.apiName)!);
  const changes = given.map(
    (item) =>
      `CASE WHEN ${differs(item)} THEN ${changesSql(
        [item.field],
        (field) => outputOf('o', field),
        (field) => outputOf('v', field),
      )} ELSE '{}' END`,
  );
  const sets = given.map(({ field }) => `${columnName(field)} = ${values.get(field.apiName)}`);
  const conditions = (['read', 'edit'] as const).map((level) => reachSql(view, sql, object.apiName, level, 't'));
  if (!external || ifMatch.length > 0)
    conditions.push(`'"' || erp.base36(t."recordVersion") || '"' = ANY(${sql.bind(ifMatch, 'text[]')})`);
  const ctes = [
    stateSql(write),
    // A row that somebody holds is waited for the long way, behind the key.
    `o AS MATERIALIZED (SELECT * FROM ${records} t WHERE t."id" = ${id}${keySql(write, sql)}
      AND EXISTS (SELECT FROM s WHERE ${freshSql(write, sql)}) AND ${conditions.join(' AND ')} FOR NO KEY UPDATE SKIP LOCKED)`,
    `v AS MATERIALIZED (SELECT ${storedFields(object).map(after).join(', ')} FROM o WHERE ${given.map(differs).join(' OR ')})`,
    `j AS MATERIALIZED (SELECT ${answerSql(write, 'v')}::text AS body, jsonb_build_object('ETag', '"' || erp.base36(v."recordVersion") || '"') AS headers FROM v)`,
    `k AS (${claimKeySql(schema, key, sql.bind, `FROM j WHERE set_config('lock_timeout', '${KEY_PATIENCE_MS}', true) IS NOT NULL`, { status: '200', headers: 'j.headers', body: 'j.body' })})`,
    `u AS (UPDATE ${records} SET ${sets.join(', ')}, "recordVersion" = "recordVersion" + 1, "updatedAt" = statement_timestamp(), "updatedById" = ${user} WHERE "id" = ${id} AND EXISTS (SELECT FROM k))`,
    `c AS MATERIALIZED (SELECT v."id" AS record_id, v."recordVersion" AS record_version, 0 AS position, ${newTrailIds(sql)}, ${changes.join(' || ')} AS changes FROM o, v WHERE EXISTS (SELECT FROM k))`,
    ...trailSql(write, sql, object, { kind: 'update', from: 'c', transactionSize: 1 }),
  ];
  return sql.statement(`WITH ${ctes.join(',\n')}
    SELECT s.m, s.a, (SELECT count(*)::int FROM k), (SELECT body FROM j), (SELECT "recordVersion" FROM v) FROM s`);
}
