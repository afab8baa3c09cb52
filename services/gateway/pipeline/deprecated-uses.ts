/**
 * Counts who calls operations that are going to be gone, for administrators and operators. A request waits for none of
 * it: what was counted goes to auth soon after a client's first call of a day, and hourly after that.
 */

import { LRUCache } from 'lru-cache';
import type { AuthActions, DeprecatedUse } from '../../../contracts/auth.ts';
import { entryBound } from '../../../lib/values/entry-bound.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import type { Metrics, Sample } from '../../../mixins/metrics/metrics.ts';
import type { Call } from './call.ts';

const HOUR_MS = 3_600_000;
const DAY_CHARS = 'YYYY-MM-DD'.length;
/** Pairs of client and operation that are counted between two writes; those beyond are in the metric alone. */
const USES_MAX = 10_000;
/** Of one call. */
const BATCH_MAX = 500;

type Noted = AuthActions['auth.deprecatedUses.add']['params']['uses'][number];

interface DeprecatedUseSink {
  add: (uses: readonly Noted[]) => Promise<unknown>;
  /** A client's first call of a day, as this process sees it. */
  firstOfDay: (use: Noted) => void;
}

export class DeprecatedUses {
  readonly #sink: DeprecatedUseSink;
  readonly #now: () => number;
  readonly #requests = new Map<string, number>();
  /** Counted and not yet written, by tenant, client, operation and day. */
  #counted = new Map<string, Noted & DeprecatedUse>();
  /** When those of the same key were written last. */
  readonly #writtenAt = new LRUCache<string, number>(entryBound(USES_MAX));

  constructor(sink: DeprecatedUseSink, now: () => number = () => performance.now()) {
    this.#sink = sink;
    this.#now = now;
  }

  /** A request was answered. Public operations have no client to name. */
  note({ routeIfKnown, session, startedAt }: Pick<Call, 'routeIfKnown' | 'session' | 'startedAt'>): void {
    const operation = routeIfKnown?.operation;
    if (!operation?.deprecated) return;
    const { operationId } = operation;
    this.#requests.set(operationId, (this.#requests.get(operationId) ?? 0) + 1);
    if (!session) return;
    const { tenantId, clientId } = session;
    const lastUsedAt = formatTimestamp(new Date(startedAt));
    const key = [tenantId, operationId, clientId, lastUsedAt.slice(0, DAY_CHARS)].join(' ');
    const use = this.#counted.get(key);
    if (use) {
      use.requests++;
      use.lastUsedAt = lastUsedAt;
    } else if (this.#counted.size < USES_MAX) {
      const first = { tenantId, operationId, clientId, requests: 1, lastUsedAt };
      this.#counted.set(key, first);
      if (!this.#writtenAt.has(key)) this.#sink.firstOfDay(first);
    }
  }

  /** Called each second: writes what is due. */
  sweep(): void {
    if (this.#counted.size === 0) return;
    const dueBefore = this.#now() - HOUR_MS;
    this.#write(([key]) => (this.#writtenAt.get(key) ?? Number.NEGATIVE_INFINITY) <= dueBefore).catch(() => {});
  }

  /** Writes all of it, for a stop. */
  close(): Promise<void> {
    return this.#write(() => true);
  }

  /** Uses that auth does not accept are lost: the next hour reports the same clients. */
  async #write(isDue: (entry: [string, Noted]) => boolean): Promise<void> {
    const due = [...this.#counted].filter(isDue);
    for (const [key] of due) {
      this.#counted.delete(key);
      this.#writtenAt.set(key, this.#now());
    }
    for (let from = 0; from < due.length; from += BATCH_MAX)
      await this.#sink.add(due.slice(from, from + BATCH_MAX).map(([, use]) => use));
  }

  register(metrics: Metrics): void {
    metrics.counters(
      'erp_deprecated_requests_total',
      'Requests for operations that are going to be gone.',
      ['operation'],
      () => [...this.#requests].map(([operation, count]): Sample => [{ operation }, count]),
    );
  }
}
