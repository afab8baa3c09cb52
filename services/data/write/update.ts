/**
 * Changing a record: one statement claims the key, locks the record and compares; after the checks a second one writes
 * everything and travels together with COMMIT.
 */
import { requireObject } from '../../../lib/access/decide.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { typeOf } from '../../../lib/field-types/registry.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import type { FieldMeta } from '../../../lib/snapshot/types.ts';
import { identifier } from '../../../mixins/database/database.ts';
import { claimKeySql, completeKeySql } from '../../../mixins/idempotency/idempotency.ts';
import { changesSql, columnType, etagOf, outputOf, recordJson, Sql, table } from '../sql.ts';
import { USER_STEPS } from '../users/rules.ts';
import {
  checkDependentPicklists,
  controlledFields,
  type Given,
  readBody,
  referenceNotFound,
  validationFailed,
} from './body.ts';
import { noteEffect } from './check-only.ts';
import { lookupSql, readLock, refuseDenied, sameKey } from './checks.ts';
import { checkDuplicates, confirmedSql } from './duplicates.ts';
import { checkRecordType, typedFields } from './record-types.ts';
import { actorSql, movesItself, parentLocksSql } from './rollups.ts';
import { checkRules, ruleFields } from './rules.ts';
import { type Reached, reachedSql, reachSql, requireReached } from './sharing.ts';
import { newTrailIds, trailSql } from './trail.ts';
import type { Step, Write } from './write.ts';

/** In the order of the checks of every mutation. */
export const UPDATE_STEPS: readonly Step[] = [
  USER_STEPS.mirrorNames,
  readValues,
  lockRecord,
  mayUpdate,
  refuseDenied,
  refuseUnreached,
  matchVersion,
  checkContent,
  USER_STEPS.beforeUpdate,
  checkRules,
  refuseContent,
  checkDuplicates,
  keepWhenEqual,
  store,
];

/** Stored decimals come as text, for a rule compares every digit of them. */
const EXACT_DECIMALS = true;

function readValues(write: Write): void {
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
}

/** Claims the key, takes the row lock, looks references up and compares given values with stored ones: one round trip. */
export async function lockRecord(write: Write, ahead: Ahead = { reads: [], sets: [] }): Promise<void> {
  const { view, object, schema, key, tx, given } = write;
  const sql = new Sql();
  const lookups = given.filter((item) => item.lookup);
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
  const sqlOf = (item: (typeof given)[number]): string =>
    item.lookup
      ? `r.r${lookups.indexOf(item)}`
      : `${sql.bind(item.value, typeOf(item.field).bindType)}::${columnType(item.field)}`;
  const id = sql.bind(write.id, 'uuid');
  const moves = new Map(lookups.map((item, index) => [item.field.apiName, `SELECT r.r${index} FROM r`]));
  const parents = parentLocksSql(write, {
    object: object.apiName,
    ids: id,
    changed: new Set([...given.map((item) => item.field), ...ahead.sets].map((field) => field.apiName)),
    moves,
    gate: ' AND EXISTS (SELECT FROM k)',
  });
  const text = `WITH
    s AS MATERIALIZED (SELECT metadata_version AS m, access_version AS a FROM ${schema}._state FOR ${isUser ? 'UPDATE' : 'SHARE'}),
    k AS (${claimKeySql(schema, key, sql.bind, `FROM s WHERE s.m = ${sql.bind(view.metadataVersion, 'integer')} AND s.a = ${sql.bind(view.accessVersion, 'integer')}`, null)}),
    r AS MATERIALIZED (SELECT ${lookups.map((item, index) => `${lookupSql(schema, sql, item)} AS r${index}`).join(', ') || '1 AS none'}),
    ${parents.ctes.map((cte) => `${cte},\n    `).join('')}o AS MATERIALIZED (SELECT * FROM ${table(schema, object.apiName)} t WHERE "id" = ${id} AND EXISTS (SELECT FROM k)${keySql(write, sql)}${parents.after} AND ${reachSql(view, sql, object.apiName, 'read', 't')} FOR NO KEY UPDATE)
    SELECT s.m, s.a, (SELECT count(*)::int FROM k), o."recordVersion", ${
      needed.size ? `${recordJson('o', [...needed], EXACT_DECIMALS)}::text` : 'NULL'
    }${given.map((item) => `, ${item.lookup ? `r.r${lookups.indexOf(item)}` : 'NULL'}, o.${identifier(item.field.apiName)} IS DISTINCT FROM ${sqlOf(item)}`).join('')},
      ${reachedSql(write, sql, 'o', levelOf(given), new Map(lookups.map((item, index) => [item, `r.r${index}`])))}
    FROM s CROSS JOIN r LEFT JOIN o ON true${actorSql(write, sql)}`;
  const row = (await tx.arrays(sql.statement(text))).rows[0]!;
  if (!(await readLock(write, row))) return;
  write.reached = row.at(-1) as Reached;
  write.stored = row[4] === null ? {} : (JSON.parse(row[4] as string) as Record<string, unknown>);
  write.given = given.map((item, index) =>
    item.lookup ? { ...item, value: row[5 + index * 2] as string | null, lookup: null } : item,
  );
  write.invalid.push(
    ...lookups.filter((item) => row[5 + given.indexOf(item) * 2] === null).map((item) => referenceNotFound(item.field)),
  );
  write.changed = write.given.filter((_, index) => row[6 + index * 2] === true);
}

/** A record that is addressed by an external id has it still. */
const keySql = ({ external }: Write, sql: Sql): string =>
  external
    ? ` AND ${sameKey(`t.${identifier(external.field.apiName)}`, sql.bind(external.value, typeOf(external.field).bindType), external.field)}`
    : '';

/** Who a record belongs to is for those to decide who reach it fully. */
const levelOf = (given: readonly Given[]): 'edit' | 'full' =>
  given.some((item) => item.field.apiName === 'ownerId') ? 'full' : 'edit';

export function refuseUnreached({ reached, changed }: Write): void {
  requireReached(reached, levelOf(changed));
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
  stored.catch(() => {});
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
  const { schema, object, key, request, changed } = write;
  const sql = new Sql();
  const version = write.recordVersion + 1;
  const name = table(schema, object.apiName);
  const id = sql.bind(write.id, 'uuid');
  const sets = changed.map(
    (item) => `${identifier(item.field.apiName)} = ${sql.bind(item.value, typeOf(item.field).bindType)}`,
  );
  const fields = changed.map((item) => item.field);
  const ctes = [
    `o AS MATERIALIZED (SELECT * FROM ${name} WHERE "id" = ${id})`,
    `u AS (UPDATE ${name} SET ${sets.join(', ')}, "recordVersion" = ${sql.bind(version, 'integer')}, "updatedAt" = statement_timestamp(), "updatedById" = ${sql.bind(request.userId, 'uuid')} WHERE "id" = ${id} RETURNING *)`,
    `c AS MATERIALIZED (SELECT u."id" AS record_id, u."recordVersion" AS record_version, 0 AS position, ${newTrailIds(sql)}, ${changesSql(
      fields,
      (field) => outputOf('o', field),
      (field) => outputOf('u', field),
    )} AS changes FROM u, o)`,
    ...trailSql(
      schema,
      sql,
      {
        kind: 'update',
        operationId: write.call.operationId,
        request,
        key,
        transactionId: write.transactionId,
        transactionSize: 1,
      },
      object,
      'c',
    ),
    ...confirmedSql(write, sql, 'c'),
    ...(object.apiName === 'User' ? USER_STEPS.updateSql(write, sql, 'c') : []),
  ];
  const answer = (_sql: Sql, alias: string): string => `${answerSql(write, alias)}::text`;
  const reply = await storeAndAnswer(write, sql, ctes, { status: 200, version, answer });
  noteEffect(write, 'update', object, { id: write.id, fields: fields.map((field) => field.apiName) });
  write.reply = reply;
}
