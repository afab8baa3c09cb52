/** Statements on changed mail addresses, and on the links that confirm or undo a change. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

/** A change can be undone for this long after it took effect. */
const UNDO_DAYS = 7;

/** The new address of a user. */
interface ChangedAddress {
  readonly tenantId: string;
  readonly userId: string;
  readonly address: string;
}

/** Confirms the new address, or undoes the change. */
export interface AddressLink extends ChangedAddress {
  /** Restored by the link; null: the link confirms. */
  readonly earlierAddress: string | null;
}

type UserKey = Pick<ChangedAddress, 'tenantId' | 'userId'>;

export function insertAddressLink(link: AddressLink & { tokenHash: Buffer }, validSeconds: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `INSERT INTO auth.address_links (tenant_id, token_hash, user_id, address, earlier_address, expires_at)
     VALUES (${sql.bind(link.tenantId, 'uuid')}, ${sql.bind(link.tokenHash, 'bytea')}, ${sql.bind(link.userId, 'uuid')},
       ${sql.bind(link.address, 'text')}, ${sql.bind(link.earlierAddress, 'text')},
       now() + make_interval(secs => ${sql.bind(validSeconds, 'integer')}))`,
  );
}

/**
 * A live link of a change that is pending, or has taken effect and can be undone. Undo works for inactive users as well:
 * otherwise the link could be blocked by deactivating the user until it expires. The tenant is not known yet.
 */
export function addressLink(tokenHash: Buffer): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT link.tenant_id AS "tenantId", link.user_id AS "userId", link.address, link.earlier_address AS "earlierAddress"
     FROM auth.address_links link JOIN auth.credentials credential USING (tenant_id, user_id)
     WHERE link.token_hash = ${sql.bind(tokenHash, 'bytea')} AND link.expires_at > now()
       AND (credential.active OR link.earlier_address IS NOT NULL)
       AND (link.applied_at IS NOT NULL OR lower(credential.pending_email) = lower(link.address))`,
  );
}

const ofUser = (sql: Sql, { tenantId, userId }: UserKey): string =>
  `tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}`;

export interface PendingAddress {
  /** The address in effect. */
  readonly email: string;
  /** A mail with an undo link of this change has left for it, or was rejected for good. */
  readonly notified: boolean;
}

/** The pending change, locked until the transaction ends; no row when another address is pending by now. */
export function holdPendingAddress(changed: ChangedAddress): Statement {
  const sql = new Sql();
  const address = sql.bind(changed.address, 'text');
  return sql.statement(
    `SELECT email, EXISTS (SELECT FROM auth.address_links link
         WHERE link.tenant_id = credential.tenant_id AND link.user_id = credential.user_id
           AND lower(link.address) = lower(${address}) AND lower(link.earlier_address) = lower(credential.email)
           AND link.sent_at IS NOT NULL AND link.applied_at IS NULL AND link.expires_at > now()) AS notified
     FROM auth.credentials credential
     WHERE ${ofUser(sql, changed)} AND active AND lower(pending_email) = lower(${address}) FOR NO KEY UPDATE`,
  );
}

/** Notes that the mail with the undo link has left, or was rejected for good. */
export function noteNotified(change: UserKey & { earlierAddress: string; address: string }): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.address_links SET sent_at = now()
     WHERE ${ofUser(sql, change)} AND applied_at IS NULL
       AND lower(address) = lower(${sql.bind(change.address, 'text')})
       AND lower(earlier_address) = lower(${sql.bind(change.earlierAddress, 'text')})`,
  );
}

/** Uses a live link up: of several calls at once, one gets it. */
export function claimAddressLink({ tenantId }: UserKey, tokenHash: Buffer): Statement {
  const sql = new Sql();
  return sql.statement(
    `DELETE FROM auth.address_links
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND token_hash = ${sql.bind(tokenHash, 'bytea')} AND expires_at > now()
     RETURNING applied_at::text AS "appliedAt"`,
  );
}

/** The pending address takes effect, and its undo links are valid from now on. In this order. */
export function applyAddress(changed: ChangedAddress): readonly Statement[] {
  const [credential, links] = [new Sql(), new Sql()];
  return [
    credential.statement(
      `UPDATE auth.credentials SET email = pending_email, pending_email = NULL, updated_at = now()
       WHERE ${ofUser(credential, changed)}`,
    ),
    links.statement(
      `UPDATE auth.address_links SET applied_at = now(), expires_at = now() + interval '${UNDO_DAYS} days'
       WHERE ${ofUser(links, changed)} AND earlier_address IS NOT NULL AND applied_at IS NULL
         AND lower(address) = lower(${links.bind(changed.address, 'text')})`,
    ),
  ];
}

export function dropPendingAddress(changed: ChangedAddress): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.credentials SET pending_email = NULL, refused_email = pending_email, updated_at = now()
     WHERE ${ofUser(sql, changed)} AND lower(pending_email) = lower(${sql.bind(changed.address, 'text')})`,
  );
}

/** Restores the earlier address, and replaces a password, which may have been chosen with a link to the new address. */
export function restoreAddress(user: UserKey, earlierAddress: string, passwordHash: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.credentials SET email = ${sql.bind(earlierAddress, 'text')}, pending_email = NULL,
       refused_email = coalesce(pending_email, email), updated_at = now(),
       password_hash = CASE WHEN password_hash IS NOT NULL THEN ${sql.bind(passwordHash, 'text')} END
     WHERE ${ofUser(sql, user)} RETURNING password_hash IS NOT NULL AS "hadPassword"`,
  );
}

/** Removes factors that were set up since; recovery codes end with the last factor. In this order. */
export function deleteFactorsSince(user: UserKey, since: string): readonly Statement[] {
  const added = ['passkeys', 'authenticators'].map((table) => {
    const sql = new Sql();
    return sql.statement(
      `DELETE FROM auth.${table} WHERE ${ofUser(sql, user)} AND created_at >= ${sql.bind(since, 'timestamptz')}`,
    );
  });
  const codes = new Sql();
  const mine = ofUser(codes, user);
  return [
    ...added,
    codes.statement(
      `DELETE FROM auth.recovery_codes WHERE ${mine}
         AND NOT EXISTS (SELECT FROM auth.passkeys WHERE ${mine}) AND NOT EXISTS (SELECT FROM auth.authenticators WHERE ${mine})`,
    ),
  ];
}

/**
 * Voids links about a pending change, and about changes that took effect at this time or later. Links about earlier ones
 * stay: otherwise, changing the address twice would take the undo away from the first owner.
 */
export function forgetAddressLinks(user: UserKey, since: string | null): Statement {
  const sql = new Sql();
  return sql.statement(
    `DELETE FROM auth.address_links
     WHERE ${ofUser(sql, user)} AND (applied_at IS NULL OR applied_at >= ${sql.bind(since, 'timestamptz')})`,
  );
}
