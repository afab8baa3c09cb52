/** Statements on links to addresses of users. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

export type AddressPurpose = 'confirm' | 'object';

export interface AddressLink {
  readonly tenantId: string;
  readonly userId: string;
  readonly purpose: AddressPurpose;
  readonly address: string;
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

/** What waits becomes the address to which links go, or is dropped. One row, unless another one waits by now. */
export function settleAddress({ tenantId, userId, address, purpose }: AddressLink): Statement {
  const sql = new Sql();
  const email = purpose === 'confirm' ? 'email = pending_email, ' : '';
  return sql.statement(
    `UPDATE auth.credentials SET ${email}pending_email = NULL, updated_at = now()
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')} AND active
       AND lower(pending_email) = lower(${sql.bind(address, 'text')})
     RETURNING user_id AS "userId"`,
  );
}
