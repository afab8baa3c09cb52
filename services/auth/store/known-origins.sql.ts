/** Statements on the origins from which users have signed in. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

/** Remembers origins of a user, and forgets the oldest beyond `kept`. To be run in this order. */
export function rememberOrigins(
  tenantId: string,
  userId: string,
  origins: readonly Buffer[],
  kept: number,
): readonly Statement[] {
  const insert = new Sql();
  const tenant = insert.bind(tenantId, 'uuid');
  const user = insert.bind(userId, 'uuid');
  const prune = new Sql();
  const mine = `tenant_id = ${prune.bind(tenantId, 'uuid')} AND user_id = ${prune.bind(userId, 'uuid')}`;
  return [
    insert.statement(
      `INSERT INTO auth.known_origins (tenant_id, user_id, origin, last_used_at)
       SELECT ${tenant}, ${user}, origin, now() FROM unnest(${insert.bind(origins, 'bytea[]')}) origin ORDER BY origin
       ON CONFLICT (tenant_id, user_id, origin) DO UPDATE SET last_used_at = excluded.last_used_at`,
    ),
    prune.statement(
      `DELETE FROM auth.known_origins WHERE ${mine} AND origin IN (
         SELECT origin FROM auth.known_origins WHERE ${mine}
         ORDER BY last_used_at DESC, origin OFFSET ${prune.bind(kept, 'integer')})`,
    ),
  ];
}

/** Those of the origins from which the user has signed in. */
export function knownOrigins(tenantId: string, userId: string, origins: readonly Buffer[]): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT origin FROM auth.known_origins
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}
       AND origin = ANY(${sql.bind(origins, 'bytea[]')})`,
  );
}

export function deleteOriginsOfUser(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `DELETE FROM auth.known_origins
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}`,
  );
}

export interface BeforeSignIn {
  readonly email: string;
  /** A sign-in was completed before. */
  readonly signedIn: boolean;
  readonly knownBrowser: boolean;
}

/** Known origins of a user who signs in; locked, so that of two sign-ins in the same new browser one is the first. */
export function beforeSignIn(tenantId: string, userId: string, browser: Buffer | null): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT credential.email, credential.signed_in_at IS NOT NULL AS "signedIn",
       EXISTS (SELECT FROM auth.known_origins known WHERE known.tenant_id = credential.tenant_id
         AND known.user_id = credential.user_id AND known.origin = ${sql.bind(browser, 'bytea')}) AS "knownBrowser"
     FROM auth.credentials credential
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')} FOR NO KEY UPDATE`,
  );
}

export function noteCompleteSignIn(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.credentials SET signed_in_at = now()
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}`,
  );
}
