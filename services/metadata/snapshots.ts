/** Snapshots as bytes, the last used ones in memory. */
import type { Database } from '../../mixins/database/database.ts';
import { CountedCache } from '../../mixins/metrics/counted-cache.ts';
import type { CacheNumbers } from '../../mixins/metrics/metrics.ts';
import { currentVersion, readSnapshot } from './store.ts';

const MEMORY_MAX_BYTES = 64 * 1024 * 1024;

export class Snapshots {
  readonly #database: Database;
  readonly #cache = new CountedCache<string, Buffer>({
    maxSize: MEMORY_MAX_BYTES,
    sizeCalculation: (bytes) => bytes.length + 100,
  });

  constructor(database: Database) {
    this.#database = database;
    database.onReplaced(() => this.#cache.clear());
  }

  /** For metrics. */
  get numbers(): CacheNumbers {
    return this.#cache;
  }

  /** Without `version` the newest committed one; null when the tenant or the version is unknown. */
  async get(tenantId: string, version?: number): Promise<{ version: number; snapshot: Buffer } | null> {
    return this.#database.shared('metadata', tenantId, async (tx) => {
      const wanted = version ?? (await currentVersion(tx, tenantId));
      if (wanted === null) return null;
      const key = `${tenantId}:${wanted}`;
      const cached = this.#cache.get(key);
      if (cached) return { version: wanted, snapshot: cached };
      const found = await readSnapshot(tx, tenantId, wanted);
      if (found) this.#cache.set(key, found.snapshot);
      return found;
    });
  }
}
