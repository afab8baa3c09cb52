/** The only SQL of ratelimit: how much room a tenant takes. */

import { tenantSchema } from '../../lib/context.ts';
import type { Database } from '../../mixins/database/database.ts';

const BELIEVED_MS = 60_000;
const TENANTS_MAX = 10_000;

export class StorageStore {
  readonly #database: Database;
  readonly #known = new Map<string, { bytes: number; at: number }>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Bytes of a tenant's tables and indexes, at most a minute old. */
  async usedBytes(tenantId: string): Promise<number> {
    const now = Date.now();
    const known = this.#known.get(tenantId);
    if (known && now - known.at < BELIEVED_MS) return known.bytes;
    const { rows } = await this.#database.tenant(tenantId, (tx) =>
      tx.query<{ bytes: number }>(
        `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint AS bytes
           FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'm')`,
        [tenantSchema(tenantId)],
      ),
    );
    const bytes = Number(rows[0]!.bytes);
    if (this.#known.size >= TENANTS_MAX) this.#known.clear();
    this.#known.set(tenantId, { bytes, at: now });
    return bytes;
  }
}
