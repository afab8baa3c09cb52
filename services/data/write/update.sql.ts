/** The statements that change a record step by step: one that locks and compares, one that stores. */
import type { RecordOperation } from '../../../lib/access/decide.ts';
import { typeOf } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { SetSql } from '../../../mixins/database/set-sql.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { completeKeySql } from '../../../mixins/mutation/key.sql.ts';
import {
  changesSql,
  columnName,
  columnType,
  exactJson,
  outputOf,
  reachSql,
  recordJson,
  storedFields,
  table,
} from '../sql.ts';
import { controlledFields } from './body.ts';
import { CLAIM_COLUMNS, claimSql, IF_CLAIMED } from './checks.sql.ts';
import type { LockRow } from './checks.ts';
import { typedFields } from './record-types.ts';
import { type Comparison, comparisonSql, referencesSql, sameKey } from './references.ts';
import { actorSql, type PendingReference, parentLocksSql } from './rollups.ts';
import { ruleFields } from './rules.ts';
import { reachedSql } from './sharing.ts';
import { standardObject } from './standard-objects.ts';
import { newTrailIds, randomTrailIds, trailSql } from './trail.ts';
import { idOf, userOf } from './write.sql.ts';
import type { FieldValue, ReachLevel, Write } from './write.ts';

/** Columns that a write computing values under the lock reads and sets. */
export interface LockPlan {
  /** Stored fields that it will read. */
  readonly reads: readonly FieldMeta[];
  /** Fields that it will set. */
  readonly sets: readonly FieldMeta[];
  /** References to parents with rollups that it will set. */
  readonly pending: readonly PendingReference[];
}

/** Result of lockForUpdateSql. All of it but ClaimRow is null when there is no record. */
export interface LockedRow extends LockRow, Comparison {
  readonly stored: Readonly<Record<string, unknown>>;
  readonly reached: ReachLevel;
}

/** Claims the key, locks the record and its parents, looks references up and compares given values with stored ones. */
export function lockForUpdateSql(write: Write, plan: LockPlan, operation: RecordOperation): Statement {
  const sql = new Sql();
  return sql.statement(lockText(write, sql, plan, operation));
}

/** The same for several records of one object, in their order, of which the bodies have the same fields; null: they have not. */
export function lockManySql(
  writes: readonly Write[],
  plan: LockPlan,
  operationOf: (given: readonly FieldValue[]) => RecordOperation,
): Statement | null {
  const set = new SetSql(writes);
  const text = set.common((write, sql) => lockText(write, sql, plan, operationOf(write.given)));
  if (text === null) return null;
  return set.statement(`WITH input AS MATERIALIZED (${set.input()})
    SELECT one.* FROM input CROSS JOIN LATERAL (${text}) one ORDER BY input.n`);
}

function lockText(write: Write, sql: Sql, plan: LockPlan, operation: RecordOperation): string {
  const { view, object, unit, given } = write;
  const { cte: references, ids } = referencesSql(write, given, (item) => sql.for(item));
  const id = sql.bind(write.id, 'uuid');
  const parents = parentLocksSql(write, {
    object: object.apiName,
    id,
    changed: new Set([...given.map((item) => item.field), ...plan.sets].map((field) => field.apiName)),
    moves: ids,
    pending: plan.pending.map((item) => ({ ...item, id: sql.bind(item.id, 'uuid') })),
    gate: IF_CLAIMED,
  });
  const ctes = [
    claimSql(write, sql),
    references,
    ...parents.ctes,
    `locked AS MATERIALIZED (SELECT * FROM ${table(unit.schema, object.apiName)} t
      WHERE "id" = ${id}${IF_CLAIMED}${keySql(write, sql)}${parents.after}
        AND ${reachSql(view, sql, object.apiName, 'read', 't')}
      FOR NO KEY UPDATE)`,
  ];
  return `WITH ${ctes.join(',\n')}
    SELECT ${CLAIM_COLUMNS}, locked."recordVersion",
      ${exactJson('locked', neededFields(write, plan))} AS stored,
      ${comparisonSql(sql, given, ids, 'locked')},
      ${reachedSql(write, sql, 'locked', operation, ids)} AS reached
    FROM state CROSS JOIN refs LEFT JOIN locked ON true${actorSql(write, sql.for(write))}`;
}

/** Stored fields that the steps between lock and change read. */
function neededFields({ object, given }: Write, { reads, sets }: LockPlan): FieldMeta[] {
  if (standardObject(object)?.readsEveryField) return [...storedFields(object)];
  const written = given.length ? given : sets.map((field) => ({ field }));
  const controlled = controlledFields(object, written).flatMap((field) =>
    [field, object.fields[field.controllingField ?? '']].filter((item) => item !== undefined),
  );
  const read = [...ruleFields(object), ...reads].filter((field) => columnType(field) !== null);
  return [...new Set([...read, ...typedFields(object, written), ...controlled])];
}

/** SQL condition, beginning with AND: a record that is addressed by an external id has it still. */
export function keySql({ external }: Write, { bind }: Pick<Sql, 'bind'>): string {
  if (!external) return '';
  const { field, value } = external;
  return ` AND ${sameKey(`t.${columnName(field)}`, bind(value, typeOf(field).bindType), field)}`;
}

/** SQL of the record as the caller reads it, of the row `alias`. */
export const answerSql = (write: Write, alias: string): string =>
  recordJson(alias, write.access.readable, write.call.ieee754Compatible);

/** The JSON text of the answer. */
export interface ReplyRow {
  readonly body: string;
}

interface StoredReply {
  readonly status: 200 | 201;
  readonly answer: (sql: Sql, alias: string) => string;
}

/** Completes the key with the record as it is. */
export function completeUnchangedSql(write: Write, headers: object): Statement {
  const { object, unit } = write;
  const sql = new Sql();
  const ctes = [
    `reply AS MATERIALIZED (SELECT ${answerSql(write, 't')}::text AS body
      FROM ${table(unit.schema, object.apiName)} t WHERE t."id" = ${sql.bind(write.id, 'uuid')})`,
    completeCte(write, sql, '200', sql.bind(JSON.stringify(headers), 'jsonb')),
  ];
  return sql.statement(`WITH ${ctes.join(',\n')}\nSELECT body FROM reply`);
}

/** Stores the record, of which `ctes` make `updated`, and completes the key with the answer. */
export function storeSql(
  write: Write,
  sql: Sql,
  ctes: readonly string[],
  { status, headers, answer }: StoredReply & { readonly headers: object },
): Statement {
  const parts = [
    ...ctes,
    `reply AS MATERIALIZED (SELECT ${answer(sql, 'updated')} AS body FROM updated)`,
    completeCte(write, sql, String(status), sql.bind(JSON.stringify(headers), 'jsonb')),
  ];
  return sql.statement(`WITH ${parts.join(',\n')}\nSELECT body FROM reply`);
}

/** Completes the key with the record as the statement before has left it. */
export function storedReplySql(write: Write, { status, answer }: StoredReply): Statement {
  const { object, unit } = write;
  const sql = new Sql();
  const ctes = [
    `reply AS MATERIALIZED (SELECT ${answer(sql, 't')} AS body, ${etagSql('t')} AS etag
      FROM ${table(unit.schema, object.apiName)} t WHERE t."id" = ${sql.bind(write.id, 'uuid')})`,
    completeCte(write, sql, String(status), `jsonb_build_object('ETag', reply.etag)`),
  ];
  return sql.statement(`WITH ${ctes.join(',\n')}\nSELECT body, etag FROM reply`);
}

/** SQL of the ETag of the row `alias`. */
export const etagSql = (alias: string): string => `'"' || erp.base36(${alias}."recordVersion") || '"'`;

const completeCte = ({ unit }: Write, sql: Sql, status: string, headers: string): string =>
  `key_done AS (${completeKeySql(unit.schema, unit.key, sql.for(unit.key).of, { status, headers, body: 'reply.body' }, 'FROM reply')})`;

/** Changes the same fields of several records, each in its version, as parts of one transaction. */
export function updateManySql(writes: readonly [Write, ...Write[]]): Statement {
  const set = new SetSql(writes);
  const { of, constant } = set.placeholders;
  const [{ object, changed, unit, place }] = writes;
  const records = table(unit.schema, object.apiName);
  const id = of(idOf, 'uuid');
  const sets = [
    ...changed.map(
      ({ field }, index) =>
        `${columnName(field)} = ${of((write) => write.changed[index]?.value ?? null, typeOf(field).bindType)}`,
    ),
    '"recordVersion" = t."recordVersion" + 1',
    '"updatedAt" = statement_timestamp()',
    `"updatedById" = ${of(userOf, 'uuid')}`,
  ];
  const changes = changesSql(
    changed.map((item) => item.field),
    (field) => outputOf('former', field),
    (field) => outputOf('updated', field),
  );
  const position = `(row_number() OVER () + ${constant(place.index - 1, 'integer')})::integer`;
  const ctes = [
    `former AS MATERIALIZED (SELECT t.* FROM ${records} t WHERE t."id" IN (SELECT ${id} FROM input))`,
    `updated AS (UPDATE ${records} t SET ${sets.join(', ')} FROM input WHERE t."id" = ${id} RETURNING t.*)`,
    `change AS MATERIALIZED (SELECT updated."id" AS record_id, updated."recordVersion" AS record_version,
        ${position} AS position, ${randomTrailIds}, ${changes} AS changes
      FROM updated JOIN former ON former."id" = updated."id")`,
    ...trailSql(writes[0], set.placeholders, object, { kind: 'update', from: 'change', transactionSize: place.size }),
  ];
  return set.statement(`WITH input AS MATERIALIZED (${set.input()}),\n${ctes.join(',\n')}
    SELECT count(*)::integer AS updated FROM updated`);
}

/** CTEs former and updated, the record as it was and as it becomes, and change, what differs, for trailSql. */
export function changeSql(write: Write, sql: Sql, version: number): string[] {
  const { object, changed, id: recordId, place, unit } = write;
  const records = table(unit.schema, object.apiName);
  const id = sql.bind(recordId, 'uuid');
  const sets = [
    ...changed.map(({ field, value }) => `${columnName(field)} = ${sql.bind(value, typeOf(field).bindType)}`),
    `"recordVersion" = ${sql.bind(version, 'integer')}`,
    '"updatedAt" = statement_timestamp()',
    `"updatedById" = ${sql.bind(unit.request.userId, 'uuid')}`,
  ];
  const changes = changesSql(
    changed.map((item) => item.field),
    (field) => outputOf('former', field),
    (field) => outputOf('updated', field),
  );
  return [
    `former AS MATERIALIZED (SELECT * FROM ${records} WHERE "id" = ${id})`,
    `updated AS (UPDATE ${records} SET ${sets.join(', ')} WHERE "id" = ${id} RETURNING *)`,
    `change AS MATERIALIZED (SELECT updated."id" AS record_id, updated."recordVersion" AS record_version,
        ${place.index} AS position, ${newTrailIds(sql.for(write))}, ${changes} AS changes
      FROM updated, former)`,
  ];
}
