/** The statements of sharing a record by hand and taking a share back. */
import { NEEDS } from '../../../lib/access/decide.ts';
import type { Share } from '../../../lib/access/sharing.ts';
import { isUuid, uuidv7 } from '../../../lib/values/ids.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { auditSql, CallerSql } from '../../../mixins/mutation/audit.ts';
import { completeKeySql } from '../../../mixins/mutation/key.sql.ts';
import { reachSql, table } from '../sql.ts';
import { CLAIM_COLUMNS, claimSql, IF_CLAIMED } from '../write/checks.sql.ts';
import type { Write } from '../write/write.ts';
import { SHARE_COLUMNS } from './shares.ts';

/** A share as the body of the request asks for it. */
export interface GivenShare extends Share {
  readonly reason: string | null;
}

/** Claims the key and locks the record; `mayShare` says whether the user decides who else reaches it. */
export function lockForShareSql(write: Write): Statement {
  const { view, object, unit } = write;
  const sql = new Sql();
  const reached = (operation: 'read' | 'share', alias: string): string =>
    reachSql(view, sql, object.apiName, NEEDS[operation].level, alias);
  return sql.statement(`WITH ${claimSql(write, sql)},
    locked AS MATERIALIZED (SELECT * FROM ${table(unit.schema, object.apiName)} t
      WHERE t."id" = ${sql.bind(write.id, 'uuid')}${IF_CLAIMED} AND ${reached('read', 't')}
      FOR NO KEY UPDATE)
    SELECT ${CLAIM_COLUMNS}, locked."recordVersion", ${reached('share', 'locked')} AS "mayShare"
    FROM state LEFT JOIN locked ON true`);
}

/**
 * SQL for whether the principal is a user who can sign in (required as for owners), and how many other
 * shares the record has. Asked behind the lock: the statement that waited for it has not seen what others did
 * meanwhile.
 */
export function stateOfSharesSql(write: Write, given: GivenShare): Statement {
  const { schema } = write.unit;
  const sql = new Sql();
  const { principalType, principalId } = given;
  const userId = principalType === 'user' && isUuid(principalId) ? principalId : null;
  return sql.statement(`SELECT
    EXISTS (SELECT FROM ${table(schema, 'User')} u
      WHERE u."id" = ${sql.bind(userId, 'uuid')} AND u."active" IS NOT FALSE) AS "isUser",
    (SELECT count(*)::int FROM ${schema}._shares sh
      WHERE ${ofRecord(write, sql)} AND NOT (${toPrincipal(sql, given)})) AS others`);
}

export function shareSql(write: Write, given: GivenShare): Statement {
  const { object, unit } = write;
  const { schema, key } = unit;
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
    bind(unit.request.userId, 'uuid'),
  ];
  const outcome = { status: '201', headers: "'{}'::jsonb", body: 'reply.body' };
  return sql.statement(`WITH
    former AS MATERIALIZED (SELECT ${SHARE_COLUMNS} FROM ${schema}._shares sh
      WHERE ${ofRecord(write, sql)} AND ${toPrincipal(sql, given)}),
    sh AS (INSERT INTO ${schema}._shares AS t
        (share_id, object, record_id, principal_type, principal_id, access, reason, created_by_id)
      VALUES (${values.join(', ')})
      ON CONFLICT (record_id, principal_type, principal_id, object) DO UPDATE SET
        access = excluded.access, reason = excluded.reason,
        created_at = excluded.created_at, created_by_id = excluded.created_by_id
      RETURNING t.*),
    stored AS MATERIALIZED (SELECT ${SHARE_COLUMNS} FROM sh),
    reply AS MATERIALIZED (SELECT row_to_json(stored)::text AS body FROM stored),
    key_done AS (${completeKeySql(schema, key, sql.for(key).of, outcome, 'FROM reply')}),
    audit AS (${shareAuditSql(
      write,
      sql,
      '(SELECT to_jsonb(former) FROM former)',
      '(SELECT to_jsonb(stored) FROM stored)',
    )})
    SELECT body FROM reply`);
}

export function shareExistsSql(write: Write, shareId: string | null): Statement {
  const sql = new Sql();
  const { schema } = write.unit;
  return sql.statement(
    `SELECT EXISTS (SELECT FROM ${schema}._shares sh WHERE ${isShare(write, sql, shareId)}) AS exists`,
  );
}

const COLUMNS = 'share_id, object, record_id, principal_type, principal_id, access, reason, created_at, created_by_id';

export function unshareSql(write: Write, shareId: string | null): Statement {
  const { schema, key, request } = write.unit;
  const sql = new Sql();
  const outcome = { status: '204', headers: "'{}'::jsonb", body: 'NULL' };
  const former = `(SELECT to_jsonb(former) FROM (SELECT ${SHARE_COLUMNS} FROM sh) former)`;
  return sql.statement(`WITH
    sh AS (DELETE FROM ${schema}._shares sh WHERE ${isShare(write, sql, shareId)} RETURNING *),
    revoked AS (INSERT INTO ${schema}._revoked_shares (${COLUMNS}, revoked_by_id, granted_tx)
      SELECT ${COLUMNS}, ${sql.bind(request.userId, 'uuid')}, tx FROM sh),
    key_done AS (${completeKeySql(schema, key, sql.for(key).of, outcome)}),
    audit AS (${shareAuditSql(write, sql, former, 'NULL')})
    SELECT count(*)::int FROM sh`);
}

const ofRecord = ({ id, object }: Write, sql: Sql): string =>
  `sh.record_id = ${sql.bind(id, 'uuid')} AND sh.object = ${sql.bind(object.apiName, 'text')}`;

const isShare = (write: Write, sql: Sql, shareId: string | null): string =>
  `sh.share_id = ${sql.bind(shareId, 'uuid')} AND ${ofRecord(write, sql)}`;

const toPrincipal = (sql: Sql, { principalType, principalId }: GivenShare): string =>
  `sh.principal_type = ${sql.bind(principalType, 'text')} AND sh.principal_id = ${sql.bind(principalId, 'text')}`;

/** Audit of the mutation: what the share was before and what it is now (SQL of jsonb). */
function shareAuditSql({ call, object, id, unit }: Write, sql: Sql, from: string, to: string): string {
  const entry = {
    operationId: call.operationId,
    outcome: 'committed',
    idempotencyKey: unit.key.key,
    objectApiName: object.apiName,
    recordId: id,
  } as const;
  const changes = `jsonb_build_object('share', jsonb_build_object('from', ${from}, 'to', ${to}))`;
  return auditSql(unit.schema, sql, new CallerSql(sql.for(unit.request)), entry, { changes });
}
