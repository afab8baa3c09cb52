/**
 * Answers of other services that the gateway uses for a few seconds. An entry past its age is never used; one that is
 * getting old is read again in the background, so that steady traffic does not wait. docs/decisions/
 * libraries-off-the-hot-path.md says why this is not lru-cache's `fetchMethod`.
 */
import { LRUCache } from 'lru-cache';
import type { CacheNumbers } from '../../../mixins/metrics/metrics.ts';

/** A value is used this long after it was asked for. */
const MAX_AGE_MS = 5_000;
const REFRESH_MS = 2_500;

interface Entry<V> {
  value: V | undefined;
  askedAt: number;
  pending: Promise<V> | null;
}

export class RefreshingCache<Q, V extends object> implements CacheNumbers {
  /** Totals since the start. */
  hits = 0;
  misses = 0;
  evictions = 0;
  readonly #entries: LRUCache<string, Entry<V>>;
  readonly #load: (question: Q) => Promise<V>;
  readonly #now: () => number;

  constructor(load: (question: Q) => Promise<V>, options: { max?: number; now?: () => number } = {}) {
    this.#load = load;
    this.#entries = new LRUCache({
      max: options.max ?? 50_000,
      dispose: (_value, _key, reason) => {
        if (reason === 'evict') this.evictions++;
      },
    });
    this.#now = options.now ?? (() => performance.now());
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The value at once when it is fresh, a promise when it has to be asked for. */
  get(key: string, question: Q): V | Promise<V> {
    const entry = this.#entries.get(key);
    if (entry?.value !== undefined) {
      const age = this.#now() - entry.askedAt;
      if (age < MAX_AGE_MS) {
        if (age > REFRESH_MS && !entry.pending) this.#ask(key, entry, question).catch(() => {});
        this.hits++;
        return entry.value;
      }
    }
    this.misses++;
    if (entry?.pending) return entry.pending;
    const fresh = entry ?? { value: undefined, askedAt: 0, pending: null };
    if (!entry) this.#entries.set(key, fresh);
    return this.#ask(key, fresh, question);
  }

  /** The value as it is now. Callers that ask at the same time share one question. */
  renew(key: string, question: Q): Promise<V> {
    const entry = this.#entries.get(key) ?? { value: undefined, askedAt: 0, pending: null };
    this.#entries.set(key, entry);
    return entry.pending ?? this.#ask(key, entry, question);
  }

  /** Forgets the entry: the next request asks again, and an answer under way is not stored. */
  drop(key: string): void {
    this.#entries.delete(key);
  }

  #ask(key: string, entry: Entry<V>, question: Q): Promise<V> {
    const askedAt = this.#now();
    const pending = this.#load(question).then(
      (value) => {
        entry.value = value;
        entry.askedAt = askedAt;
        entry.pending = null;
        return value;
      },
      (error) => {
        entry.pending = null;
        if (entry.value === undefined && this.#entries.get(key) === entry) this.#entries.delete(key);
        throw error;
      },
    );
    entry.pending = pending;
    return pending;
  }
}
