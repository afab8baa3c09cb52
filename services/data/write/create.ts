/** Creating a record: every check, then one statement that writes everything or nothing. */

import { requireObject } from '../../../lib/access/decide.ts';
import { formattedSql } from '../../../lib/schema/auto-number.ts';
import { isNumbered, typeOf } from '../../../lib/schema/field-types/registry.ts';
import { emptyRollup } from '../../../lib/schema/rollups.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { identifier, literal } from '../../../lib/values/sql-text.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { claimableSql, claimKeySql } from '../../../mixins/mutation/key.sql.ts';

import { changesSql, columnName, columnType, etagOf, outputOf, recordJson, storedFields, table } from '../sql.ts';
import { assertFresh } from '../tenants.ts';
import { USER_STEPS } from '../users/rules.ts';
import { checkDependentPicklists, completeCreate, readBody, referenceNotFound } from './body.ts';
import { noteEffect } from './check-only.ts';
import { freshSql, refuseDenied, refuseInvalid, replyOfKey, stateSql } from './checks.ts';
import { checkDuplicates, confirmedSql } from './duplicates.ts';
import { checkRecordType } from './record-types.ts';
import { referredSql } from './references.ts';
import { actorSql, parentLocksSql } from './rollups.ts';
import { checkRules } from './rules.ts';
import { deniedParentsSql, parentDenied } from './sharing.ts';
import { newTrailIds, trailSql } from './trail.ts';
import { lockKey } from './upsert.ts';
import { validationFailed } from './violations.ts';
import type { Referred, Step, Write } from './write.ts';

/** In the order of the checks of every mutation; the key and the references are settled by the statement itself. */
export const CREATE_STEPS: readonly Step[] = [
  mayCreate,
  USER_STEPS.mirrorNames,
  readValues,
  refuseDenied,
  USER_STEPS.beforeCreate,
  checkRules,
  refuseInvalid,
  lockKey,
  checkDuplicates,
  insert,
];

function mayCreate({ view, object }: Write): void {
  requireObject(view.access, object.apiName, 'create');
}

function readValues(write: Write): void {
  const { view, object, access, body } = write;
  const read = completeCreate(view, object, access, body, readBody(view, object, access, body, 'create'));
  write.given = read.given;
  write.denied = read.denied;
  write.invalid.push(
    ...read.invalid,
    ...checkDependentPicklists(access, read.given),
    ...checkRecordType(access, read.given),
  );
}

async function insert(write: Write): Promise<void> {
  const { view, object, schema, key } = write;
  const sql = new Sql();
  const headers = { ETag: etagOf(1), Location: `/api/v1/data/${object.apiName}/${write.id}` };
  const { cte: referred, ids } = referredSql(write, sql, write.given);
  const { columns, selects } = columnsOf(write, sql, ids);
  // A request that is repeated under its key takes no number.
  const numbered = !write.within && Object.values(object.fields).some(isNumbered);
  const deniedParents = deniedParentsSql(write, sql, ids, null);
  const parents = parentLocksSql(write, {
    object: object.apiName,
    id: null,
    changed: null,
    moves: ids,
    gate: ' AND EXISTS (SELECT FROM s)',
  });
  const ctes = [
    stateSql(write),
    referred,
    ...(deniedParents ? [`p AS MATERIALIZED (SELECT ${deniedParents} AS denied FROM r)`] : []),
    ...parents.ctes,
    `v AS MATERIALIZED (SELECT ${selects.join(', ')} FROM s, r WHERE ${freshSql(write, sql)}${[...ids.values()].map((id) => ` AND ${id} IS NOT NULL`).join('')}${parents.after}${deniedParents ? ' AND NOT (SELECT denied FROM p)' : ''}${numbered ? ` AND ${claimableSql(schema, key, sql.bind)}` : ''})`,
    `j AS MATERIALIZED (SELECT ${recordJson(
      'v',
      write.access.readable,
      write.call.ieee754Compatible,
    )}::text AS body FROM v)`,
    // What another mutation creates along the way stands under the key of that mutation.
    write.within
      ? 'k AS (SELECT FROM j)'
      : `k AS (${claimKeySql(schema, key, sql.bind, 'FROM j', { status: '201', headers: sql.bind(JSON.stringify(headers), 'jsonb'), body: 'j.body' })})`,
    `i AS (INSERT INTO ${table(schema, object.apiName)} (${columns.join(', ')}) SELECT ${columns.join(', ')} FROM v WHERE EXISTS (SELECT FROM k))`,
    `c AS MATERIALIZED (SELECT v."id" AS record_id, 1 AS record_version, ${write.place.index} AS position, ${newTrailIds(sql)}, ${createdChanges(write)} AS changes FROM v WHERE EXISTS (SELECT FROM k))`,
    ...trailSql(write, sql, object, { kind: 'create', from: 'c', transactionSize: write.place.size }),
    ...confirmedSql(write, sql, 'c'),
    ...(object.apiName === 'User' ? USER_STEPS.createSql(write, sql, 'c') : []),
  ];
  const { rows } = await write.commit(
    sql.statement(`WITH ${ctes.join(',\n')}
      SELECT s.m, s.a, (SELECT count(*)::int FROM k), (SELECT body FROM j)${[...ids.values()].map((id) => `, ${id} IS NOT NULL`).join('')}${deniedParents ? ', (SELECT denied FROM p)' : ''} FROM s, r${actorSql(write, sql)}`),
  );
  const row = rows[0]!;
  assertFresh(view, row[0], row[1]);
  if (deniedParents && row.at(-1) === true) throw parentDenied();
  const missing = [...ids.keys()].filter((_, index) => row[4 + index] === false);
  if (missing.length) throw validationFailed(missing.map(referenceNotFound));
  if (row[2] === 0) return replyOfKey(write);
  noteEffect(write, 'create', object, { id: null, fields: createdFields(write).map((field) => field.apiName) });
  write.reply = { status: 201, headers, body: Buffer.from(row[3] as string) };
}

/** Columns of the new row with the SQL of their values. */
function columnsOf(write: Write, sql: Sql, ids: Referred): { columns: string[]; selects: string[] } {
  const user = sql.bind(write.request.userId, 'uuid');
  const given = new Map(write.given.map((item) => [item.field.apiName, item]));
  const columns: string[] = [];
  const selects: string[] = [];
  const sqlOf = (field: FieldMeta): string => {
    const item = given.get(field.apiName);
    if (item) return ids.get(item) ?? sql.bind(item.value, typeOf(field).bindType);
    // A number that was taken is not given back by a rollback.
    if (isNumbered(field) && write.checkOnly) return 'NULL';
    if (isNumbered(field)) return autoNumberSql(write.schema, write.object.apiName, field);
    if (field.rollup) return emptyRollup(field);
    switch (field.system ? field.apiName : '') {
      case 'id':
        return sql.bind(write.id, 'uuid');
      case 'ownerId':
      case 'createdById':
      case 'updatedById':
        return user;
      case 'createdAt':
      case 'updatedAt':
        return 'statement_timestamp()';
      case 'recordVersion':
        return '1';
      default:
        return 'NULL';
    }
  };
  for (const field of storedFields(write.object)) {
    columns.push(columnName(field));
    // The column's own type, so that the answer shows what is stored: 10.5 in numeric(18,2) is 10.50.
    selects.push(`(${sqlOf(field)})::${columnType(field)} AS ${columnName(field)}`);
  }
  return { columns, selects };
}

/** The next number of a sequence in the field's format, such as INV-00042; longer numbers keep all their digits. */
export function autoNumberSql(schema: string, objectApiName: string, field: FieldMeta): string {
  const sequence = literal(`${schema}.${identifier(`_seq_${objectApiName}_${field.apiName}`)}`);
  return `(SELECT ${formattedSql(field.format, 'q.n')} FROM (SELECT nextval(${sequence}) AS n) q)`;
}

/** `{field: {from: null, to}}` of everything that a new record carries besides what the platform keeps. */
const createdChanges = (write: Write): string =>
  changesSql(
    createdFields(write),
    () => 'NULL',
    (field) => outputOf('v', field),
  );

const createdFields = (write: Write): FieldMeta[] => [
  ...write.given.filter((item) => item.value !== null || item.lookup).map((item) => item.field),
  ...Object.values(write.object.fields).filter(isNumbered),
];
