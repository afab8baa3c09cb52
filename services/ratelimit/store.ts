/** How much storage a tenant uses: the only SQL of ratelimit. */
import { tenantSchema } from '../../lib/context.ts';
import type { Database } from '../../mixins/database/database.ts';
import { Sql } from '../../mixins/database/sql.ts';

const FRESH_MS = 60_000;
const TENANTS_MAX = 10_000;

export class StorageStore {
  readonly #database: Database;
  readonly #known = new Map<string, { bytes: number; at: number }>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Bytes of a tenant's tables and indexes, at most a minute old. */
  async usedBytes(tenantId: string): Promise<number> {
    const now = performance.now();
    const known = this.#known.get(tenantId);
    if (known && now - known.at < FRESH_MS) return known.bytes;
    const sql = new Sql();
    const statement = sql.statement(
      `SELECT coalesce(sum(pg_total_relation_size(relation.oid)), 0)::bigint AS bytes
       FROM pg_class relation JOIN pg_namespace namespace ON namespace.oid = relation.relnamespace
       WHERE namespace.nspname = ${sql.bind(tenantSchema(tenantId), 'name')} AND relation.relkind IN ('r', 'p', 'm')`,
    );
    // No role is needed: sizes are not what the tables hold.
    const { bytes } = await this.#database.login((tx) => tx.one<{ bytes: number }>(statement));
    if (this.#known.size >= TENANTS_MAX) this.#known.clear();
    this.#known.set(tenantId, { bytes, at: now });
    return bytes;
  }
}
