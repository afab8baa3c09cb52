/** Statements on links to addresses of users, and on what becomes of a changed one. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

/** A link that went to the new address, or to the one before, whose user may object. */
type AddressPurpose = 'confirm' | 'object';
/** The decision of a link's user. */
export type AddressDecision = 'confirm' | 'agree' | 'object';

/** After so long the user of the earlier address has not objected. */
export const OBJECTION_DAYS = 7;

/** The address of a user that waits to be confirmed. */
export interface ChangedAddress {
  readonly tenantId: string;
  readonly userId: string;
  readonly address: string;
}

export interface AddressLink extends ChangedAddress {
  readonly purpose: AddressPurpose;
}

export function insertAddressLink(link: AddressLink & { tokenHash: Buffer }, validSeconds: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `INSERT INTO auth.address_links (tenant_id, token_hash, user_id, purpose, address, expires_at)
     VALUES (${sql.bind(link.tenantId, 'uuid')}, ${sql.bind(link.tokenHash, 'bytea')}, ${sql.bind(link.userId, 'uuid')},
       ${sql.bind(link.purpose, 'text')}, ${sql.bind(link.address, 'text')},
       now() + make_interval(secs => ${sql.bind(validSeconds, 'integer')}))`,
  );
}

/** A live link whose address is still the one that waits. The tenant is not known yet. */
export function addressLink(tokenHash: Buffer): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT link.tenant_id AS "tenantId", link.user_id AS "userId", link.purpose, link.address
     FROM auth.address_links link JOIN auth.credentials credential USING (tenant_id, user_id)
     WHERE link.token_hash = ${sql.bind(tokenHash, 'bytea')} AND link.expires_at > now() AND credential.active
       AND lower(credential.pending_email) = lower(link.address)`,
  );
}

/** Of several calls at once, one gets it. */
export function claimAddressLink(tenantId: string, tokenHash: Buffer): Statement {
  const sql = new Sql();
  return sql.statement(
    `DELETE FROM auth.address_links
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND token_hash = ${sql.bind(tokenHash, 'bytea')} AND expires_at > now()
     RETURNING user_id AS "userId"`,
  );
}

/** Nothing waits any more. */
const NOTHING_PENDING =
  'pending_email = NULL, pending_since = NULL, pending_confirmed_at = NULL, pending_agreed_at = NULL, updated_at = now()';
const UNOPPOSED = `pending_since < now() - interval '${OBJECTION_DAYS} days'`;

/** Outcome of a decision. `waitingForConsent`: as `waiting`, and it does not count without the other side. */
export type AddressOutcome = 'settled' | 'waiting' | 'waitingForConsent';

/** The pending address, unless another one is pending by now. */
const pending = (sql: Sql, { tenantId, userId, address }: ChangedAddress): string =>
  `tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')} AND active
     AND lower(pending_email) = lower(${sql.bind(address, 'text')})`;

/** Notes who has decided. One row, unless another address waits by now. */
export function decideAddress(changed: ChangedAddress, decision: AddressDecision): Statement {
  const sql = new Sql();
  const change = {
    confirm: 'pending_confirmed_at = now()',
    agree: 'pending_agreed_at = now()',
    object: NOTHING_PENDING,
  }[decision];
  return sql.statement(
    `UPDATE auth.credentials SET ${change} WHERE ${pending(sql, changed)}
     RETURNING user_id AS "userId", pending_since IS NOT NULL AS "settlesByItself"`,
  );
}

/** The pending address becomes the one for links. One row when both have confirmed it. */
export function settleAddress(changed: ChangedAddress): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.credentials SET email = pending_email, ${NOTHING_PENDING}
     WHERE ${pending(sql, changed)} AND pending_confirmed_at IS NOT NULL AND (pending_agreed_at IS NOT NULL OR ${UNOPPOSED})
     RETURNING user_id AS "userId"`,
  );
}

/** Users whose new address was confirmed and not objected to; a few of all tenants. */
export const UNOPPOSED_ADDRESSES: Statement = {
  text: `SELECT tenant_id AS "tenantId", user_id AS "userId", pending_email AS address
  FROM auth.credentials WHERE pending_confirmed_at IS NOT NULL AND ${UNOPPOSED} AND active
  ORDER BY pending_since LIMIT 500`,
};
