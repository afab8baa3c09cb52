/** Cross-origin access (Fetch standard): no origin by default; each external client lists its own. */

import { LRUCache } from 'lru-cache';
import { LIMITS } from '../../../lib/limits.ts';
import { entryBound } from '../../../lib/values/entry-bound.ts';
import { isServiceUnavailable } from '../../../mixins/service-unavailable.ts';

const MAX_AGE_MS = 30_000;
const ANSWERS_MAX = 10_000;

export class Origins {
  readonly #ask: (origin: string, clientId?: string) => Promise<boolean>;
  readonly #known = new LRUCache<string, { allowed: boolean }>({ ...entryBound(ANSWERS_MAX), ttl: MAX_AGE_MS });
  /** Answers used while auth is away. */
  readonly #last = new LRUCache<string, { allowed: boolean }>({
    ...entryBound(ANSWERS_MAX),
    ttl: LIMITS.auth_absence_seconds * 1_000,
  });

  constructor(ask: (origin: string, clientId?: string) => Promise<boolean>) {
    this.#ask = ask;
  }

  allowed(origin: string, clientId?: string): boolean | Promise<boolean> {
    if (!/^https?:\/\/[^\s"'<>]{1,255}$/.test(origin)) return false;
    const key = `${clientId ?? ''} ${origin}`;
    const known = this.#known.get(key);
    if (known) return known.allowed;
    return this.#ask(origin, clientId).then(
      (allowed) => {
        const answer = { allowed };
        this.#known.set(key, answer);
        this.#last.set(key, answer);
        return allowed;
      },
      (error: unknown) => {
        const last = this.#last.get(key);
        if (last && isServiceUnavailable(error)) return last.allowed;
        throw error;
      },
    );
  }
}
