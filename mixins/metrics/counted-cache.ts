/** An LRU cache that counts what it answers, for `Metrics.cache`. */
import { LRUCache } from 'lru-cache';
import type { CacheNumbers } from './metrics.ts';

// lru-cache reports every single operation on a diagnostics channel, with an object for each: too much for a request.
export class CountedCache<K extends {}, V extends {}> extends LRUCache<K, V> implements CacheNumbers {
  /** Totals since the start. */
  hits = 0;
  misses = 0;
  readonly #evicted: { count: number };

  constructor(options: LRUCache.Options<K, V, unknown>) {
    const evicted = { count: 0 };
    super({
      ...options,
      dispose: (value, key, reason) => {
        if (reason === 'evict') evicted.count++;
        options.dispose?.(value, key, reason);
      },
    } as LRUCache.Options<K, V, unknown>);
    this.#evicted = evicted;
  }

  get evictions(): number {
    return this.#evicted.count;
  }

  /** Undefined for a cache that is bounded by the number of its entries. */
  get bytes(): number {
    return this.calculatedSize;
  }

  override get(key: K): V | undefined {
    const value = super.get(key);
    if (value === undefined) this.misses++;
    else this.hits++;
    return value;
  }
}
