/** Statements about subscription links, of which only the hash of the secret is stored. */
import { Sql } from '../../mixins/database/sql.ts';
import type { Statement } from '../../mixins/database/statement.ts';

export function storeLinkSql(tenantId: string, userId: string, secretHash: string): Statement {
  const sql = new Sql();
  return sql.statement(`INSERT INTO calendar.subscription_links (tenant_id, user_id, secret_hash)
    VALUES (${sql.bind(tenantId, 'uuid')}, ${sql.bind(userId, 'uuid')}, ${sql.bind(secretHash, 'text')})
    ON CONFLICT (tenant_id, user_id) DO UPDATE SET secret_hash = excluded.secret_hash, created_at = now()`);
}

export function deleteLinkSql(tenantId: string, userId: string): Statement {
  const sql = new Sql();
  return sql.statement(`DELETE FROM calendar.subscription_links
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND user_id = ${sql.bind(userId, 'uuid')}`);
}

export function linkSql(tenantId: string, userId: string, secretHash: string): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT 1 AS known FROM calendar.subscription_links WHERE tenant_id = ${sql.bind(tenantId, 'uuid')}
    AND user_id = ${sql.bind(userId, 'uuid')} AND secret_hash = ${sql.bind(secretHash, 'text')}`);
}
