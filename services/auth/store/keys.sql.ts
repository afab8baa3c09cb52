/** Statements on keys. They run under a lock, so that nodes that replace a key at the same moment replace it once. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

export type KeyPurpose = 'signing' | 'cookies' | 'factors';

/** A key to store; one of `plain` and `sealed` is null. */
export interface NewKey {
  kid: string;
  plain: Record<string, unknown> | null;
  sealed: Buffer | null;
}

export const allKeys = (): Statement =>
  new Sql().statement(
    `SELECT kid, purpose, plain, sealed, created_at AS "createdAt", retired_at AS "retiredAt"
     FROM auth.keys ORDER BY created_at DESC, kid`,
  );

/** Held until the end of the transaction. */
export const lockKeys = (): Statement => new Sql().statement("SELECT pg_advisory_xact_lock(hashtext('auth.keys'))");

export function newestKeyIsFresh(purpose: KeyPurpose, freshSeconds: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT coalesce(
       max(created_at) > clock_timestamp() - make_interval(secs => ${sql.bind(freshSeconds, 'float8')}),
       false) AS fresh
     FROM auth.keys WHERE purpose = ${sql.bind(purpose, 'text')}`,
  );
}

export function retireKeys(purpose: KeyPurpose): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.keys SET retired_at = now()
     WHERE purpose = ${sql.bind(purpose, 'text')} AND retired_at IS NULL`,
  );
}

export function insertKey(purpose: KeyPurpose, key: NewKey): Statement {
  const sql = new Sql();
  return sql.statement(
    `INSERT INTO auth.keys (kid, purpose, plain, sealed)
     VALUES (${sql.bind(key.kid, 'text')}, ${sql.bind(purpose, 'text')},
       ${sql.bind(key.plain === null ? null : JSON.stringify(key.plain), 'jsonb')}, ${sql.bind(key.sealed, 'bytea')})`,
  );
}

export function updateKey({ kid, plain, sealed }: NewKey): Statement {
  const sql = new Sql();
  return sql.statement(
    `UPDATE auth.keys
     SET plain = ${sql.bind(plain === null ? null : JSON.stringify(plain), 'jsonb')}, sealed = ${sql.bind(sealed, 'bytea')}
     WHERE kid = ${sql.bind(kid, 'text')}`,
  );
}

/** The two newest stay in any case. */
export function deleteRetiredKeys(purpose: KeyPurpose, keptSeconds: number): Statement {
  const sql = new Sql();
  const purposeValue = sql.bind(purpose, 'text');
  return sql.statement(
    `DELETE FROM auth.keys
     WHERE purpose = ${purposeValue}
       AND retired_at < now() - make_interval(secs => ${sql.bind(keptSeconds, 'float8')})
       AND kid NOT IN (SELECT kid FROM auth.keys WHERE purpose = ${purposeValue} ORDER BY created_at DESC LIMIT 2)`,
  );
}
