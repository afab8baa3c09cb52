/**
 * Results of widgets as a process keeps them for a while. A caller gets what was computed for them: the key names the
 * user, and the versions of configuration and permissions that decided what they see. Bounded by bytes, of all tenants
 * together and of each. Losing any of it costs a query and nothing else.
 */
import { CountedCache } from '../../../mixins/metrics/counted-cache.ts';
import type { CacheNumbers } from '../../../mixins/metrics/metrics.ts';

interface KeptResult {
  readonly tenantId: string;
  /** JSON of its properties, without the braces around them. */
  readonly json: string;
  /** On the clock of `performance.now()`. */
  readonly computedAtMs: number;
}

/** Approximate size of an entry besides its texts. */
const ENTRY_BYTES = 300;

export class WidgetResults implements CacheNumbers {
  readonly #maxBytes: number;
  readonly #tenantMaxBytes: number;
  readonly #results: CountedCache<string, KeptResult>;
  /** By tenant: the keys of its results with their bytes, the ones that were used last at the end. */
  readonly #ofTenants = new Map<string, { bytes: number; readonly sizes: Map<string, number> }>();
  /** Since the start. */
  hits = 0;
  misses = 0;

  constructor({ maxBytes, tenantMaxBytes }: { readonly maxBytes: number; readonly tenantMaxBytes: number }) {
    this.#maxBytes = maxBytes;
    this.#tenantMaxBytes = tenantMaxBytes;
    this.#results = new CountedCache({
      maxSize: maxBytes,
      sizeCalculation: bytesOf,
      dispose: ({ tenantId }, key) => this.#forget(tenantId, key),
    });
  }

  /** A result that is not older than this; null: there is none. */
  find(key: string, maxAgeSeconds: number): KeptResult | null {
    const kept = this.#results.get(key);
    if (!kept || performance.now() - kept.computedAtMs >= maxAgeSeconds * 1_000) {
      this.misses++;
      return null;
    }
    this.hits++;
    this.#use(kept.tenantId, key);
    return kept;
  }

  keep(key: string, result: KeptResult): void {
    const bytes = bytesOf(result, key);
    if (bytes > Math.min(this.#tenantMaxBytes, this.#maxBytes)) return;
    this.#results.delete(key);
    const { tenantId } = result;
    const tenant = this.#ofTenants.get(tenantId);
    if (tenant)
      for (const oldest of tenant.sizes.keys()) {
        if (tenant.bytes + bytes <= this.#tenantMaxBytes) break;
        this.#results.delete(oldest);
      }
    this.#results.set(key, result);
    this.#note(tenantId, key, bytes);
  }

  clear(): void {
    this.#results.clear();
  }

  get size(): number {
    return this.#results.size;
  }

  get evictions(): number {
    return this.#results.evictions;
  }

  /** Of all results that are kept. */
  get bytes(): number {
    return this.#results.calculatedSize;
  }

  bytesOfTenant(tenantId: string): number {
    return this.#ofTenants.get(tenantId)?.bytes ?? 0;
  }

  #note(tenantId: string, key: string, bytes: number): void {
    let tenant = this.#ofTenants.get(tenantId);
    if (!tenant) this.#ofTenants.set(tenantId, (tenant = { bytes: 0, sizes: new Map() }));
    tenant.sizes.set(key, bytes);
    tenant.bytes += bytes;
  }

  #use(tenantId: string, key: string): void {
    const bytes = this.#forget(tenantId, key);
    if (bytes !== undefined) this.#note(tenantId, key, bytes);
  }

  #forget(tenantId: string, key: string): number | undefined {
    const tenant = this.#ofTenants.get(tenantId);
    const bytes = tenant?.sizes.get(key);
    if (!tenant || bytes === undefined) return undefined;
    tenant.sizes.delete(key);
    tenant.bytes -= bytes;
    if (tenant.sizes.size === 0) this.#ofTenants.delete(tenantId);
    return bytes;
  }
}

/** A character takes two bytes at most. */
const bytesOf = ({ json }: KeptResult, key: string): number => ENTRY_BYTES + 2 * (json.length + key.length);
