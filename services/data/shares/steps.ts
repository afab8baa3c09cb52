/**
 * Sharing a record by hand and taking it back: the record is locked like for any other change of it, so that two who
 * share at once, or one who deletes, come one after the other. Source: docs/reference/access.md#manual-shares.
 */

import { LIMITS } from '../../../config/limits.ts';
import { NEEDS } from '../../../lib/access/decide.ts';
import type { Share } from '../../../lib/access/sharing.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { isStorable } from '../../../lib/schema/field-types/common.ts';
import { isUuid, uuidv7 } from '../../../lib/values/ids.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { completeKeySql } from '../../../mixins/mutation/key.sql.ts';

import { reachSql, table } from '../sql.ts';
import { entrySql } from '../trail/entry.ts';
import { claimSql, readLock } from '../write/checks.ts';
import { validationFailed } from '../write/violations.ts';
import type { Step, Write } from '../write/write.ts';
import { SHARE_COLUMNS, sharingDenied } from './shares.ts';

export const SHARE_STEPS: readonly Step[] = [share];
export const UNSHARE_STEPS: readonly Step[] = [takeBack];

/** The body as the gateway has checked it. */
interface Given extends Share {
  readonly reason: string | null;
}

function givenIn({ body }: Write): Given {
  const { principalType, principalId, access, reason } = body as unknown as Given & { reason?: string };
  return {
    principalType,
    principalId: principalType === 'user' ? principalId.toLowerCase() : principalId,
    access,
    reason: reason?.normalize('NFC') ?? null,
  };
}

/**
 * Claims the key and locks the record for who may share it. False: the key had been used before, and `reply` is what it
 * stands for.
 */
async function lockRecord(write: Write): Promise<boolean> {
  const { view, object, schema, tx } = write;
  const sql = new Sql();
  const reached = (operation: 'read' | 'share', alias: string): string =>
    reachSql(view, sql, object.apiName, NEEDS[operation].level, alias);
  const text = `WITH
    ${claimSql(write, sql)},
    o AS MATERIALIZED (SELECT * FROM ${table(schema, object.apiName)} t WHERE t."id" = ${sql.bind(write.id, 'uuid')} AND EXISTS (SELECT FROM k) AND ${reached('read', 't')} FOR NO KEY UPDATE)
    SELECT s.m, s.a, (SELECT count(*)::int FROM k), o."recordVersion", ${reached('share', 'o')} FROM s LEFT JOIN o ON true`;
  const row = (await tx.arrays(sql.statement(text))).rows[0]!;
  if (!(await readLock(write, row))) return false;
  if (row[4] !== true) throw sharingDenied();
  return true;
}

/** Answers behind the lock: the statement that waited for it has not seen what others did to the shares meanwhile. */
async function ask(write: Write, facts: (sql: Sql) => readonly string[]): Promise<readonly unknown[]> {
  const sql = new Sql();
  return (await write.tx.arrays(sql.statement(`SELECT ${facts(sql).join(', ')}`))).rows[0]!;
}

async function share(write: Write): Promise<void> {
  const { schema, key, object, request } = write;
  const given = givenIn(write);
  if (!(await lockRecord(write))) return;
  const [isUser, others] = (await ask(write, (sql) => [
    knownUserSql(write, sql, given),
    `(SELECT count(*)::int FROM ${schema}._shares sh WHERE ${ofRecord(write, sql)} AND NOT (${toPrincipal(sql, given)}))`,
  ])) as [boolean, number];
  refuseContent(write, given, isUser);
  if (others >= LIMITS.record_shares_max)
    throw new PlatformError('TOO_MANY_ITEMS', `A record has ${LIMITS.record_shares_max} shares at most.`, {
      details: { max: LIMITS.record_shares_max },
    });
  const sql = new Sql();
  const { bind } = sql;
  const values = [
    bind(uuidv7(), 'uuid'),
    bind(object.apiName, 'text'),
    bind(write.id, 'uuid'),
    bind(given.principalType, 'text'),
    bind(given.principalId, 'text'),
    bind(given.access, 'text'),
    bind(given.reason, 'text'),
    bind(request.userId, 'uuid'),
  ];
  const { rows } = await write.commit(
    sql.statement(`WITH
      b AS MATERIALIZED (SELECT ${SHARE_COLUMNS} FROM ${schema}._shares sh WHERE ${ofRecord(write, sql)} AND ${toPrincipal(sql, given)}),
      sh AS (INSERT INTO ${schema}._shares AS t (share_id, object, record_id, principal_type, principal_id, access, reason, created_by_id)
        VALUES (${values.join(', ')})
        ON CONFLICT (record_id, principal_type, principal_id, object) DO UPDATE SET access = excluded.access, reason = excluded.reason,
          created_at = excluded.created_at, created_by_id = excluded.created_by_id
        RETURNING t.*),
      x AS MATERIALIZED (SELECT ${SHARE_COLUMNS} FROM sh),
      j AS MATERIALIZED (SELECT row_to_json(x)::text AS body FROM x),
      k AS (${completeKeySql(schema, key, bind, { status: '201', headers: "'{}'::jsonb", body: 'j.body' }, 'FROM j')}),
      a AS (${auditSql(write, sql, '(SELECT to_jsonb(b) FROM b)', '(SELECT to_jsonb(x) FROM x)')})
      SELECT body FROM j`),
  );
  write.reply = { status: 201, headers: {}, body: Buffer.from(rows[0]![0] as string) };
}

async function takeBack(write: Write): Promise<void> {
  const { schema, key, request } = write;
  const shareId = (write.call.path['shareId'] ?? '').toLowerCase();
  const which = (sql: Sql): string =>
    `sh.share_id = ${sql.bind(isUuid(shareId) ? shareId : null, 'uuid')} AND ${ofRecord(write, sql)}`;
  if (!(await lockRecord(write))) return;
  const [isThere] = await ask(write, (sql) => [`EXISTS (SELECT FROM ${schema}._shares sh WHERE ${which(sql)})`]);
  if (isThere !== true) throw new PlatformError('RECORD_NOT_FOUND', 'The record has no such share.');
  const sql = new Sql();
  const columns =
    'share_id, object, record_id, principal_type, principal_id, access, reason, created_at, created_by_id';
  await write.commit(
    sql.statement(`WITH
      sh AS (DELETE FROM ${schema}._shares sh WHERE ${which(sql)} RETURNING *),
      r AS (INSERT INTO ${schema}._revoked_shares (${columns}, revoked_by_id, granted_tx) SELECT ${columns}, ${sql.bind(request.userId, 'uuid')}, tx FROM sh),
      k AS (${completeKeySql(schema, key, sql.bind, { status: '204', headers: "'{}'::jsonb", body: 'NULL' })}),
      a AS (${auditSql(write, sql, `(SELECT to_jsonb(x) FROM (SELECT ${SHARE_COLUMNS} FROM sh) x)`, 'NULL')})
      SELECT count(*) FROM sh`),
  );
  write.reply = { status: 204, headers: {}, body: null };
}

const ofRecord = ({ id, object }: Write, sql: Sql): string =>
  `sh.record_id = ${sql.bind(id, 'uuid')} AND sh.object = ${sql.bind(object.apiName, 'text')}`;

const toPrincipal = (sql: Sql, { principalType, principalId }: Given): string =>
  `sh.principal_type = ${sql.bind(principalType, 'text')} AND sh.principal_id = ${sql.bind(principalId, 'text')}`;

/** Whether the principal is a user who can sign in: like an owner, nobody else is given anything. */
const knownUserSql = ({ schema }: Write, sql: Sql, { principalType, principalId }: Given): string =>
  `EXISTS (SELECT FROM ${table(schema, 'User')} u WHERE u."id" = ${sql.bind(principalType === 'user' && isUuid(principalId) ? principalId : null, 'uuid')} AND u."active" IS NOT FALSE)`;

/** 422 with everything that stands against the share. */
function refuseContent({ view, object }: Write, given: Given, isUser: boolean): void {
  const { principalType, principalId, reason } = given;
  const { roles, groups } = view.snapshot;
  const problems = [];
  if (object.apiName === 'User')
    problems.push(violation('', 'REFERENCE_TYPE_INVALID', 'Users are not shared: permissions say who reads them.'));
  else if (object.sharingDefault === 'controlledByParent')
    problems.push(
      violation('', 'REFERENCE_TYPE_INVALID', `Records of ${object.apiName} follow their parent: share the parent.`),
    );
  const known =
    principalType === 'user' ? isUser : Object.hasOwn(principalType === 'role' ? roles : groups, principalId);
  if (!known) problems.push(violation('/principalId', 'REFERENCE_NOT_FOUND', `There is no such ${principalType}.`));
  if (reason !== null && !isStorable(reason))
    problems.push(violation('/reason', 'FIELD_FORMAT_INVALID', 'The text has a character that cannot be stored.'));
  if (problems.length > 0) throw validationFailed(problems, 'shared');
}

/** Audit of the mutation: what the share was before and what it is now (SQL of jsonb). */
const auditSql = ({ schema, request, key, call, object, id }: Write, sql: Sql, from: string, to: string): string =>
  entrySql(schema, sql, request, {
    operationId: call.operationId,
    outcome: 'committed',
    code: null,
    idempotencyKey: key.key,
    objectApiName: object.apiName,
    recordId: id,
    changes: `jsonb_build_object('share', jsonb_build_object('from', ${from}, 'to', ${to}))`,
  });
