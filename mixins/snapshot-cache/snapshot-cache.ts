/**
 * Tenant snapshots as a service keeps them: one parsed object per tenant and version, in a cache bounded by bytes. An
 * entry is never edited, only superseded by a higher version, so losing the cache costs a fetch and nothing else.
 */
import { completed } from '../../lib/schema/complete.ts';
import type { Snapshot } from '../../lib/schema/snapshot.ts';
import { CountedCache } from '../metrics/counted-cache.ts';
import type { CacheNumbers } from '../metrics/metrics.ts';

/** As metadata.snapshots.get answers; null: there is no such tenant. */
type FetchSnapshot = (
  tenantId: string,
  version: number | undefined,
) => Promise<{ version: number; snapshot: Uint8Array } | null>;

/** A parsed snapshot takes about this many bytes of memory per byte of its JSON text. */
const BYTES_PER_TEXT_BYTE = 3;

export class SnapshotCache {
  readonly #fetch: FetchSnapshot;
  readonly #entries: CountedCache<string, { readonly snapshot: Snapshot; readonly bytes: number }>;
  readonly #bytes = new WeakMap<Snapshot, number>();
  readonly #underway = new Map<string, Promise<Snapshot | null>>();

  /** @param maxBytes memory the parsed snapshots may take together, estimated from the length of their text */
  constructor(fetch: FetchSnapshot, maxBytes = 256 * 1024 * 1024) {
    this.#fetch = fetch;
    this.#entries = new CountedCache({ maxSize: maxBytes, sizeCalculation: (entry) => entry.bytes });
  }

  /** The snapshot of exactly this version; without `version` the current one. null: no such tenant or version. */
  async get(tenantId: string, version?: number): Promise<Snapshot | null> {
    if (version !== undefined) {
      const known = this.#entries.get(`${tenantId}@${version}`);
      if (known) return known.snapshot;
    }
    const key = `${tenantId}@${version ?? 'current'}`;
    let fetched = this.#underway.get(key);
    if (!fetched) {
      fetched = this.#load(tenantId, version).finally(() => this.#underway.delete(key));
      this.#underway.set(key, fetched);
    }
    return fetched;
  }

  /** The database was replaced by a copy, which gives versions again. */
  clear(): void {
    this.#entries.clear();
    this.#underway.clear();
  }

  /** Estimated memory of a snapshot that came from here. */
  bytesOf(snapshot: Snapshot): number {
    return this.#bytes.get(snapshot) ?? 1;
  }

  /** For metrics. */
  get numbers(): Required<CacheNumbers> {
    return this.#entries;
  }

  async #load(tenantId: string, version: number | undefined): Promise<Snapshot | null> {
    const found = await this.#fetch(tenantId, version);
    if (!found) return null;
    const bytes = Buffer.from(found.snapshot.buffer, found.snapshot.byteOffset, found.snapshot.byteLength);
    const snapshot = completed(JSON.parse(bytes.toString('utf8')));
    const size = Math.max(1, bytes.byteLength * BYTES_PER_TEXT_BYTE);
    this.#bytes.set(snapshot, size);
    this.#entries.set(`${tenantId}@${found.version}`, { snapshot, bytes: size });
    return snapshot;
  }
}
