/** The statement that estimates what all tenants store, by kind of table. */
import type { Statement } from '../../../mixins/database/statement.ts';

/** Tables that every tenant's schema has and that grow; the label of each. All others with an underscore are `other`. */
const COMPANIONS = {
  _audit: 'audit',
  _audit_chain: 'audit_chain',
  _history: 'history',
  _idempotency: 'keys',
  _outbox: 'events',
  _recycle_bin: 'deleted_records',
  _revoked_shares: 'revoked_shares',
  _shares: 'shares',
} as const;

export interface StoredRow {
  readonly kind: string;
  readonly rows: number;
  /** With indexes and what is stored out of line. */
  readonly bytes: number;
}

const KINDS = Object.entries(COMPANIONS)
  .map(([table, kind]) => `WHEN '${table}' THEN '${kind}'`)
  .join(' ');

/**
 * From the catalog alone, as autovacuum has last counted: no table is read, and it takes as long for large ones as for
 * small ones.
 */
export const storedStatement = (): Statement => ({
  text: `WITH holders AS MATERIALIZED (
      SELECT holder.oid, holder.reltuples, holder.relpages, holder.reltoastrelid,
        CASE holder.relname ${KINDS}
          ELSE CASE WHEN starts_with(holder.relname, '_') THEN 'other' ELSE 'records' END END AS kind
      FROM pg_namespace tenant JOIN pg_class holder ON holder.relnamespace = tenant.oid AND holder.relkind = 'r'
      WHERE tenant.nspname ~ '^t_[0-9a-f]{32}$'),
    parts AS (
      SELECT kind, greatest(reltuples, 0) AS rows, relpages FROM holders
      UNION ALL
      SELECT kind, 0, part.relpages FROM holders JOIN pg_class part ON part.oid = holders.reltoastrelid
      UNION ALL
      SELECT kind, 0, part.relpages
      FROM holders JOIN pg_index ON pg_index.indrelid = holders.oid JOIN pg_class part ON part.oid = pg_index.indexrelid)
    SELECT kind, sum(rows)::float8 AS rows,
      (sum(relpages) * current_setting('block_size')::integer)::float8 AS bytes
    FROM parts GROUP BY kind`,
});
