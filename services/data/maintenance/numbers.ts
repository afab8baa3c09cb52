/** Numbers about what tenants store and what has been removed of it, for Prometheus. */
import { platformTime } from '../../../lib/values/clock.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { askedNumbers } from '../../../mixins/metrics/asked-numbers.ts';
import type { Metrics, Sample } from '../../../mixins/metrics/metrics.ts';
import { type StoredRow, storedStatement } from './stored.sql.ts';
import { SWEPT, type SweepResult, type Swept } from './sweep.ts';

/** The catalog is read no more often: autovacuum counts no more often, either. */
const FRESH_MS = 5 * 60_000;
/** Another process has gone on with a tenant that has not been heard of here for so long. */
const BEHIND_MS = 30 * 60_000;

export class RetentionNumbers {
  readonly #removed: Record<Swept, number> = { confirmations: 0, keys: 0, records: 0, shares: 0, events: 0, audit: 0 };
  /** Tenants of which expired rows are left, and since when they have not been swept to the end. */
  readonly #behind = new Map<string, { readonly kinds: readonly Swept[]; readonly notedAt: number }>();
  #sweptAtMs: number | null = null;

  note(tenantId: string, { removed, unfinished }: SweepResult): void {
    for (const kind of SWEPT) this.#removed[kind] += removed[kind];
    this.#sweptAtMs = platformTime();
    this.#behind.delete(tenantId);
    if (unfinished.length > 0) this.#behind.set(tenantId, { kinds: unfinished, notedAt: performance.now() });
  }

  register(metrics: Metrics, database: Database): void {
    const stored = askedNumbers<StoredRow>(database, storedStatement, { none: [], freshMs: FRESH_MS });
    const byKind = (pick: (row: StoredRow) => number) => (): Sample[] =>
      stored().map((row) => [{ kind: row.kind }, pick(row)]);
    metrics.gauges(
      'erp_stored_rows',
      'Rows that all tenants store, as autovacuum has last counted them.',
      ['kind'],
      byKind(({ rows }) => rows),
    );
    metrics.gauges(
      'erp_stored_bytes',
      'Bytes that all tenants store, with indexes, as autovacuum has last counted them.',
      ['kind'],
      byKind(({ bytes }) => bytes),
    );
    metrics.counters('erp_retention_removed_rows_total', 'Expired rows that were removed.', ['kind'], () =>
      SWEPT.map((kind) => [{ kind }, this.#removed[kind]]),
    );
    metrics.gauges(
      'erp_retention_tenants_behind',
      'Tenants of which expired rows are left, because there are too many for one round.',
      ['kind'],
      () => this.#tenantsBehind(),
    );
    // Absent before the first time, because an alert on its age would take 0 for fifty years.
    metrics.gauges(
      'erp_retention_last_swept_timestamp_seconds',
      'When this process last removed the expired rows of a tenant.',
      [],
      () => (this.#sweptAtMs === null ? [] : [[{}, this.#sweptAtMs / 1_000]]),
    );
  }

  #tenantsBehind(): Sample[] {
    const now = performance.now();
    const behind = [...this.#behind.values()].filter(({ notedAt }) => now - notedAt < BEHIND_MS);
    return SWEPT.map((kind) => [{ kind }, behind.filter(({ kinds }) => kinds.includes(kind)).length]);
  }
}
