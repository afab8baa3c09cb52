/** Credentials found before the tenant is known, at every sign-in and every token; and the claim of a link. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

const COLUMNS = `credential.tenant_id AS "tenantId", credential.user_id AS "userId", credential.username,
  credential.email, credential.password_hash AS "passwordHash", credential.active,
  credential.pending_email AS "pendingEmail", credential.session_generation AS "sessionGeneration"`;

/** Users of any tenant that have the name; a few of them. */
export function credentialsByUsername(username: string, limit: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT ${COLUMNS} FROM auth.credentials credential
     WHERE lower(username) = lower(${sql.bind(username, 'text')})
     ORDER BY tenant_id LIMIT ${sql.bind(limit, 'integer')}`,
  );
}

export interface SignInNames {
  username: string;
  /** Null when the name has none. */
  domain: string | null;
  /** Of which tenant the user has to be; null: of the one of the domain. */
  tenantId: string | null;
  /** Keys of the browser and the network. */
  browser: Buffer | null;
  network: Buffer;
}

/**
 * The user that a name means, with whether the user has signed in from these origins before: of the tenant that was
 * named, else of the tenant that has the domain. Outside of all domains, the user of this browser.
 * One row in any case, also without a user.
 */
export function credentialForSignIn({ username, domain, tenantId, browser, network }: SignInNames): Statement {
  const sql = new Sql();
  const known = (origin: string): string =>
    `EXISTS (SELECT FROM auth.known_origins known WHERE known.tenant_id = credential.tenant_id
       AND known.user_id = credential.user_id AND known.origin = ${origin})`;
  const knownBrowser = known(sql.bind(browser, 'bytea'));
  const named = sql.bind(tenantId, 'uuid');
  return sql.statement(
    `SELECT meant.tenant_id AS "meantTenantId", found.*
     FROM (SELECT coalesce(${named},
       (SELECT tenant_id FROM auth.domains WHERE domain = ${sql.bind(domain, 'text')})) AS tenant_id) meant
     LEFT JOIN LATERAL (
       SELECT ${COLUMNS}, ${knownBrowser} AS "knownBrowser", ${known(sql.bind(network, 'bytea'))} AS "knownNetwork"
       FROM auth.credentials credential
       WHERE lower(username) = lower(${sql.bind(username, 'text')})
         AND CASE WHEN meant.tenant_id IS NULL THEN ${knownBrowser}
                  ELSE credential.tenant_id = meant.tenant_id END
       ORDER BY ${knownBrowser} DESC LIMIT 1
     ) found ON true`,
  );
}

/** Rows that a change of the user depends on; locked until the transaction ends. */
export interface StoredUser {
  readonly email: string;
  readonly pendingEmail: string | null;
  /** Address of the record that the user has refused. */
  readonly refusedEmail: string | null;
  readonly invited: boolean;
  /** The user can sign in, by whatever they have set up. */
  readonly canSignIn: boolean;
}

export function holdCredential(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT credential.email, credential.pending_email AS "pendingEmail",
       credential.refused_email AS "refusedEmail", credential.invited_at IS NOT NULL AS invited,
       credential.password_hash IS NOT NULL OR EXISTS (SELECT FROM auth.passkeys passkey
         WHERE passkey.tenant_id = credential.tenant_id AND passkey.user_id = credential.user_id)
       OR EXISTS (SELECT FROM auth.identities identity
         WHERE identity.tenant_id = credential.tenant_id AND identity.user_id = credential.user_id) AS "canSignIn"
     FROM auth.credentials credential
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')} FOR NO KEY UPDATE`,
  );
}

export interface Addresses {
  readonly email: string;
  readonly pendingEmail: string | null;
  readonly refusedEmail: string | null;
}

export function saveCredential(
  tenantId: string,
  user: { userId: string; username: string; active: boolean } & Addresses,
): Statement {
  const sql = new Sql();
  return sql.statement(
    `INSERT INTO auth.credentials AS stored (tenant_id, user_id, username, email, pending_email, refused_email, active)
     VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(user.userId, 'uuid')}, ${sql.bind(user.username, 'text')},
       ${sql.bind(user.email, 'text')}, ${sql.bind(user.pendingEmail, 'text')}, ${sql.bind(user.refusedEmail, 'text')},
       ${sql.bind(user.active, 'boolean')})
     ON CONFLICT (tenant_id, user_id) DO UPDATE SET username = excluded.username, email = excluded.email,
       pending_email = excluded.pending_email, refused_email = excluded.refused_email, active = excluded.active, updated_at = now()`,
  );
}

/** Stores a link for a mail; nothing when the user has another address by now, whose change has voided earlier links. */
export function insertMailedLink(link: MailedLink, validSeconds: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `INSERT INTO auth.password_links (tenant_id, token_hash, user_id, expires_at)
     SELECT tenant_id, ${sql.bind(link.tokenHash, 'bytea')}, user_id,
       now() + make_interval(secs => ${sql.bind(validSeconds, 'integer')})
     FROM auth.credentials
     WHERE tenant_id = ${sql.bind(link.tenantId, 'uuid')} AND user_id = ${sql.bind(link.userId, 'uuid')}
       AND email = ${sql.bind(link.email, 'text')} FOR SHARE`,
  );
}

export interface MailedLink {
  tenantId: string;
  userId: string;
  tokenHash: Buffer;
  /** The address in effect, as read for the mail. */
  email: string;
}

/** Voids links that went, or are about to go, to an address that is no longer the user's. */
export function forgetPasswordLinks(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `DELETE FROM auth.password_links
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}`,
  );
}

/** Notes that an invitation is on its way, or that there is none; false: it was before. */
export function noteInvited(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.credentials SET invited_at = now()
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')} AND invited_at IS NULL`,
  );
}

/** How many users of other tenants have a name in the domain. */
export function countInDomainElsewhere(tenantId: string, domain: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT count(*)::int AS count FROM auth.credentials
     WHERE tenant_id <> ${sql.bind(tenantId, 'uuid')}
       AND right(lower(username), length(${sql.bind(domain, 'text')}) + 1) = '@' || ${sql.bind(domain, 'text')}`,
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
    `SELECT ${COLUMNS}, link.made_by AS "madeBy"
     FROM auth.credentials credential JOIN auth.password_links link USING (tenant_id, user_id)
     WHERE link.token_hash = ${sql.bind(tokenHash, 'bytea')} AND link.used_with IS NULL AND link.expires_at > now()
       AND credential.active`,
  );
}

export function credentialByUsedLink(tokenHash: Buffer, usedWith: Buffer): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT ${COLUMNS}
     FROM auth.credentials credential JOIN auth.password_links link USING (tenant_id, user_id)
     WHERE link.token_hash = ${sql.bind(tokenHash, 'bytea')} AND link.used_with = ${sql.bind(usedWith, 'bytea')}
       AND link.expires_at > now() AND credential.active`,
  );
}

/** Marks a live link as used, for an hour: of several calls at once, one does. */
export function claimLink(tenantId: string, tokenHash: Buffer, usedWith: Buffer): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.password_links
     SET used_with = ${sql.bind(usedWith, 'bytea')}, expires_at = now() + interval '1 hour'
     WHERE used_with IS NULL AND tenant_id = ${sql.bind(tenantId, 'uuid')} AND token_hash = ${sql.bind(tokenHash, 'bytea')}
       AND expires_at > now()`,
  );
}

/** Sets a password by a link; returns whether there was one before. */
export function holdPassword(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT email, password_hash IS NOT NULL AS "hadPassword" FROM auth.credentials
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')} FOR NO KEY UPDATE`,
  );
}
