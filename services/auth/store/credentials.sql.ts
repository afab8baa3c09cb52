/** Credentials found before the tenant is known, at every sign-in and every token; and the claim of a link. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

const COLUMNS = `credential.tenant_id AS "tenantId", credential.user_id AS "userId", credential.username,
  credential.email, credential.password_hash AS "passwordHash", credential.active`;

export function credentialByUsername(username: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT ${COLUMNS} FROM auth.credentials credential WHERE lower(username) = lower(${sql.bind(username, 'text')})`,
  );
}

/** With whether its user has signed in from these origins before. */
export function credentialForSignIn(username: string, browser: Buffer | null, network: Buffer): Statement {
  const sql = new Sql();
  const known = (origin: string): string =>
    `EXISTS (SELECT FROM auth.known_origins known WHERE known.tenant_id = credential.tenant_id
       AND known.user_id = credential.user_id AND known.origin = ${origin})`;
  return sql.statement(
    `SELECT ${COLUMNS}, ${known(sql.bind(browser, 'bytea'))} AS "knownBrowser",
       ${known(sql.bind(network, 'bytea'))} AS "knownNetwork"
     FROM auth.credentials credential WHERE lower(username) = lower(${sql.bind(username, 'text')})`,
  );
}

export function credentialByUser(userId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT ${COLUMNS} FROM auth.credentials credential WHERE user_id = ${sql.bind(userId, 'uuid')}`,
  );
}

export function credentialByLink(tokenHash: Buffer): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT ${COLUMNS} FROM auth.credentials credential JOIN auth.password_links link USING (tenant_id, user_id)
     WHERE link.token_hash = ${sql.bind(tokenHash, 'bytea')} AND link.expires_at > now() AND credential.active`,
  );
}

/** Deletes a live link and returns its user: of several calls at once, one gets it. */
export function claimLink(tenantId: string, tokenHash: Buffer): Statement {
  const sql = new Sql();
  return sql.statement(
    `DELETE FROM auth.password_links
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND token_hash = ${sql.bind(tokenHash, 'bytea')}
       AND expires_at > now()
     RETURNING user_id AS "userId"`,
  );
}
