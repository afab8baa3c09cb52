/**
 * Changing a record step by step, when update-at-once.ts cannot or did not: one statement claims the key, locks the
 * record and compares; after the checks a second one writes everything and travels together with COMMIT.
 */

import { type RecordOperation, requireObject } from '../../../lib/access/decide.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { typeOf } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { completeKeySql } from '../../../mixins/mutation/key.sql.ts';

import {
  changesSql,
  columnName,
  columnType,
  etagOf,
  exactJson,
  outputOf,
  reachSql,
  recordJson,
  table,
} from '../sql.ts';
import { USER_STEPS } from '../users/rules.ts';
import { checkDependentPicklists, controlledFields, readBody } from './body.ts';
import { noteEffect } from './check-only.ts';
import { claimSql, readLock, refuseDenied } from './checks.ts';
import { checkDuplicates, confirmedSql } from './duplicates.ts';
import { checkRecordType, typedFields } from './record-types.ts';
import { comparedSql, referredSql, sameKey, settledIn } from './references.ts';
import { actorSql, type Coming, movesItself, parentLocksSql } from './rollups.ts';
import { checkRules, ruleFields } from './rules.ts';
import { reachedSql, requireReached } from './sharing.ts';
import { newTrailIds, trailSql } from './trail.ts';
import { validationFailed } from './violations.ts';
import type { Given, Reached, Step, Write } from './write.ts';

/** In the order of the checks of every mutation. */
export const UPDATE_STEPS: readonly Step[] = [
  USER_STEPS.mirrorNames,
  readValues,
  lockRecord,
  mayUpdate,
  refuseDenied,
  refuseUnreached,
  USER_STEPS.refuseGifts,
  matchVersion,
  checkContent,
  USER_STEPS.beforeUpdate,
  checkRules,
  refuseContent,
  checkDuplicates,
  keepWhenEqual,
  store,
];

export function readValues(write: Write): void {
  const read = readBody(write.view, write.object, write.access, write.body, 'update');
  write.given = read.given;
  write.denied = read.denied;
  write.invalid.push(...read.invalid);
  if (Object.keys(write.body).length === 0 && !write.external)
    write.invalid.push(violation('', 'FIELD_REQUIRED', 'The body names no field to change.'));
}

/** What a write knows beforehand of values that it works out under the lock. */
interface Ahead {
  /** Stored fields that it will read. */
  readonly reads: readonly FieldMeta[];
  /** Fields that it will set. */
  readonly sets: readonly FieldMeta[];
  /** References to parents with rollups that it will set. */
  readonly coming: readonly Coming[];
}

/** Claims the key, takes the row lock, looks references up and compares given values with stored ones: one round trip. */
export async function lockRecord(write: Write, ahead: Ahead = { reads: [], sets: [], coming: [] }): Promise<void> {
  const { view, object, schema, tx, given } = write;
  const sql = new Sql();
  const { cte: referred, ids } = referredSql(write, sql, given);
  const isUser = object.apiName === 'User';
  const needed = new Set(
    isUser
      ? Object.values(object.fields).filter((field) => columnType(field) !== null)
      : [
          ...[...ruleFields(object), ...ahead.reads].filter((field) => columnType(field) !== null),
          ...typedFields(object, given.length ? given : ahead.sets.map((field) => ({ field }))),
          ...controlledFields(object, given.length ? given : ahead.sets.map((field) => ({ field }))).flatMap((field) =>
            [field, object.fields[field.controllingField!]].filter((item) => item !== undefined),
          ),
        ],
  );
  const id = sql.bind(write.id, 'uuid');
  const parents = parentLocksSql(write, {
    object: object.apiName,
    id,
    changed: new Set([...given.map((item) => item.field), ...ahead.sets].map((field) => field.apiName)),
    moves: ids,
    coming: ahead.coming.map((item) => ({ ...item, id: sql.bind(item.id, 'uuid') })),
    gate: ' AND EXISTS (SELECT FROM k)',
  });
  const text = `WITH
    ${claimSql(write, sql)},
    ${referred},
    ${parents.ctes.map((cte) => `${cte},\n    `).join('')}o AS MATERIALIZED (SELECT * FROM ${table(schema, object.apiName)} t WHERE "id" = ${id} AND EXISTS (SELECT FROM k)${keySql(write, sql)}${parents.after} AND ${reachSql(view, sql, object.apiName, 'read', 't')} FOR NO KEY UPDATE)
    SELECT s.m, s.a, (SELECT count(*)::int FROM k), o."recordVersion", ${exactJson('o', [...needed])}::text${given.map((item) => `, ${comparedSql(sql, item, ids)}`).join('')},
      ${reachedSql(write, sql, 'o', operationOf(given), ids)}
    FROM s CROSS JOIN r LEFT JOIN o ON true${actorSql(write, sql)}`;
  const row = (await tx.arrays(sql.statement(text))).rows[0]!;
  if (!(await readLock(write, row))) return;
  write.reached = row.at(-1) as Reached;
  write.stored = JSON.parse(row[4] as string) as Record<string, unknown>;
  Object.assign(write, settledIn(write, given, row.slice(5)));
}

/** A record that is addressed by an external id has it still. */
export const keySql = ({ external }: Write, sql: Sql): string =>
  external
    ? ` AND ${sameKey(`t.${columnName(external.field)}`, sql.bind(external.value, typeOf(external.field).bindType), external.field)}`
    : '';

/** Who a record belongs to is for those to decide who reach it fully. */
const operationOf = (given: readonly Given[]): RecordOperation =>
  given.some((item) => item.field.apiName === 'ownerId') ? 'changeOwner' : 'update';

export function refuseUnreached({ reached, changed }: Write): void {
  requireReached(reached, operationOf(changed));
}

function mayUpdate({ view, object }: Write): void {
  requireObject(view.access, object.apiName, 'update');
}

export function matchVersion({ ifMatch, recordVersion, external }: Write): void {
  const current = etagOf(recordVersion);
  if (external && ifMatch.length === 0) return;
  if (ifMatch.includes(current)) return;
  throw new PlatformError('ETAG_MISMATCH', 'The record has changed since it was read: read it again and reconcile.', {
    details: { currentETag: current },
  });
}

function checkContent(write: Write): void {
  const { access, given, stored } = write;
  write.invalid.push(...checkDependentPicklists(access, given, stored), ...checkRecordType(access, given, stored));
}

function refuseContent({ invalid }: Write): void {
  if (invalid.length) throw validationFailed(invalid);
}

/** Nothing differs: nothing is committed but the key, the ETag stays. */
async function keepWhenEqual(write: Write): Promise<void> {
  if (write.changed.length) return;
  const { schema, key, object } = write;
  const sql = new Sql();
  const headers = { ETag: etagOf(write.recordVersion) };
  const { rows } = await write.commit(
    sql.statement(`WITH j AS MATERIALIZED (SELECT ${answerSql(write, 't')}::text AS body FROM ${table(schema, object.apiName)} t WHERE t."id" = ${sql.bind(write.id, 'uuid')}),
      k AS (${completeKeySql(schema, key, sql.bind, { status: '200', headers: sql.bind(JSON.stringify(headers), 'jsonb'), body: 'j.body' }, 'FROM j')})
      SELECT body FROM j`),
  );
  write.reply = { status: 200, headers, body: Buffer.from(rows[0]![0] as string) };
}

export const answerSql = (write: Write, alias: string): string =>
  recordJson(alias, write.access.readable, write.call.ieee754Compatible);

/**
 * The end of a write that changed one record: `ctes` make `u`, the record in its new version. The answer, which stands
 * under the key from now on, shows it as it is after the write.
 */
export async function storeAndAnswer(
  write: Write,
  sql: Sql,
  ctes: readonly string[],
  { status, version, answer }: { status: 200 | 201; version: number; answer: (sql: Sql, alias: string) => string },
): Promise<OperationReply> {
  const { schema, object, key, tx } = write;
  const complete = (last: Sql, headers: string): string =>
    `k AS (${completeKeySql(schema, key, last.bind, { status: String(status), headers, body: 'j.body' }, 'FROM j')})`;
  if (!movesItself(write)) {
    const headers = { ETag: etagOf(version) };
    const body = `j AS MATERIALIZED (SELECT ${answer(sql, 'u')} AS body FROM u)`;
    const parts = [...ctes, body, complete(sql, sql.bind(JSON.stringify(headers), 'jsonb'))];
    const { rows } = await write.commit(sql.statement(`WITH ${parts.join(',\n')}\nSELECT body FROM j`));
    return { status, headers, body: Buffer.from(rows[0]![0] as string) };
  }
  // Its rollups follow when the statement has ended that changes it. Both statements travel together.
  tx.gather();
  const stored = tx.arrays(sql.statement(`WITH ${ctes.join(',\n')}\nSELECT FROM u`));
  const last = new Sql();
  const etag = `'"' || erp.base36(t."recordVersion") || '"'`;
  const read = `j AS MATERIALIZED (SELECT ${answer(last, 't')} AS body, ${etag} AS etag
    FROM ${table(schema, object.apiName)} t WHERE t."id" = ${last.bind(write.id, 'uuid')})`;
  const done = complete(last, `jsonb_build_object('ETag', j.etag)`);
  try {
    const { rows } = await write.commit(last.statement(`WITH ${read},\n${done}\nSELECT body, etag FROM j`));
    const [body, tag] = rows[0] as [string, string];
    return { status, headers: { ETag: tag }, body: Buffer.from(body) };
  } catch (error) {
    await stored; // why the other one failed as well
    throw error;
  }
}

async function store(write: Write): Promise<void> {
  const { object, changed } = write;
  const sql = new Sql();
  const version = write.recordVersion + 1;
  const ctes = [
    ...changeSql(write, sql, version),
    ...trailSql(write, sql, object, { kind: 'update', from: 'c', transactionSize: 1 }),
    ...confirmedSql(write, sql, 'c'),
    ...(object.apiName === 'User' ? USER_STEPS.updateSql(write, sql, 'c') : []),
  ];
  const answer = (_sql: Sql, alias: string): string => `${answerSql(write, alias)}::text`;
  const reply = await storeAndAnswer(write, sql, ctes, { status: 200, version, answer });
  noteEffect(write, 'update', object, { id: write.id, fields: changed.map(({ field }) => field.apiName) });
  write.reply = reply;
}

/** CTEs o and u, the record as it was and as it becomes, and c, what that changes in it, for trailSql. */
export function changeSql(
  { schema, object, request, changed, id: record }: Write,
  sql: Sql,
  version: number,
): string[] {
  const name = table(schema, object.apiName);
  const id = sql.bind(record, 'uuid');
  const sets = [
    ...changed.map(({ field, value }) => `${columnName(field)} = ${sql.bind(value, typeOf(field).bindType)}`),
    `"recordVersion" = ${sql.bind(version, 'integer')}`,
    '"updatedAt" = statement_timestamp()',
    `"updatedById" = ${sql.bind(request.userId, 'uuid')}`,
  ];
  const changes = changesSql(
    changed.map((item) => item.field),
    (field) => outputOf('o', field),
    (field) => outputOf('u', field),
  );
  return [
    `o AS MATERIALIZED (SELECT * FROM ${name} WHERE "id" = ${id})`,
    `u AS (UPDATE ${name} SET ${sets.join(', ')} WHERE "id" = ${id} RETURNING *)`,
    `c AS MATERIALIZED (SELECT u."id" AS record_id, u."recordVersion" AS record_version, 0 AS position, ${newTrailIds(sql)}, ${changes} AS changes FROM u, o)`,
  ];
}
