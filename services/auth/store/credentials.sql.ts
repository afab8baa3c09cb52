/** Credentials found before the tenant is known, at every sign-in and every token; and the claim of a link. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

const COLUMNS = `credential.tenant_id AS "tenantId", credential.user_id AS "userId", credential.username,
  credential.email, credential.password_hash AS "passwordHash", credential.active,
  credential.pending_email AS "pendingEmail"`;

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
  readonly invited: boolean;
  readonly hasPassword: boolean;
  /** The user can sign in, by whatever they have set up. */
  readonly canSignIn: boolean;
}

export function holdCredential(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT credential.email, credential.pending_email AS "pendingEmail", credential.invited_at IS NOT NULL AS invited,
       credential.password_hash IS NOT NULL AS "hasPassword",
       credential.password_hash IS NOT NULL OR EXISTS (SELECT FROM auth.passkeys passkey
         WHERE passkey.tenant_id = credential.tenant_id AND passkey.user_id = credential.user_id) AS "canSignIn"
     FROM auth.credentials credential
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')} FOR NO KEY UPDATE`,
  );
}

const SAME_PENDING = 'lower(stored.pending_email) = lower(excluded.pending_email)';

/** A new address has to be confirmed from the beginning. */
export function saveCredential(
  tenantId: string,
  user: { userId: string; username: string; email: string; pendingEmail: string | null; active: boolean },
): Statement {
  const sql = new Sql();
  return sql.statement(
    `INSERT INTO auth.credentials AS stored (tenant_id, user_id, username, email, pending_email, active)
     VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(user.userId, 'uuid')}, ${sql.bind(user.username, 'text')},
       ${sql.bind(user.email, 'text')}, ${sql.bind(user.pendingEmail, 'text')}, ${sql.bind(user.active, 'boolean')})
     ON CONFLICT (tenant_id, user_id) DO UPDATE SET username = excluded.username, email = excluded.email,
       pending_email = excluded.pending_email,
       pending_since = CASE WHEN ${SAME_PENDING} THEN stored.pending_since WHEN excluded.pending_email IS NOT NULL THEN now() END,
       pending_confirmed_at = CASE WHEN ${SAME_PENDING} THEN stored.pending_confirmed_at END,
       pending_agreed_at = CASE WHEN ${SAME_PENDING} THEN stored.pending_agreed_at END, active = excluded.active, updated_at = now()`,
  );
}

/** A pending new address does not become effective by itself, however long no one objects. */
export function awaitConsent(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.credentials SET pending_since = NULL
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}`,
  );
}

/** Forgets links that went, or were about to go, to an address that is not the user's any more. */
export function forgetLinks(tenantId: string, userId: string, kinds: 'address' | 'all'): readonly Statement[] {
  return (kinds === 'all' ? ['password_links', 'address_links'] : ['address_links']).map((table) => {
    const sql = new Sql();
    return sql.statement(
      `DELETE FROM auth.${table} WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}`,
    );
  });
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

/** Marks a live link as used, for an hour, and returns its user: of several calls at once, one gets it. */
export function claimLink(tenantId: string, tokenHash: Buffer, usedWith: Buffer): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.password_links
     SET used_with = ${sql.bind(usedWith, 'bytea')}, expires_at = now() + interval '1 hour'
     WHERE used_with IS NULL AND tenant_id = ${sql.bind(tenantId, 'uuid')} AND token_hash = ${sql.bind(tokenHash, 'bytea')}
       AND expires_at > now()
     RETURNING user_id AS "userId"`,
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
