/**
 * Counts requests by operation and status, in plain numbers that cost a fraction of those of prom-client; prom-client
 * gets them when Prometheus asks. Source: docs/reference/metrics.md.
 */
import { Durations } from '../../../mixins/metrics/durations.ts';
import type { DurationsSample, Metrics, Sample } from '../../../mixins/metrics/metrics.ts';
import type { Deliveries } from './deliveries.ts';
import type { RefusalDelays } from './refusal-delays.ts';

const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Requests of one operation with one status. */
interface Series {
  readonly labels: Readonly<Record<'operation' | 'status', string>>;
  readonly durations: Durations;
}

interface Sources {
  /** Requests that are being answered. */
  inFlight: () => number;
  deliveries: Deliveries;
  refusalDelays: RefusalDelays;
  /** Requests refused by a limit so far. */
  refusals: () => number;
}

export class RequestMetrics {
  readonly #series = new Map<string, Map<number, Series>>();

  observe(operation: string, status: number, milliseconds: number): void {
    let byStatus = this.#series.get(operation);
    if (!byStatus) this.#series.set(operation, (byStatus = new Map()));
    let series = byStatus.get(status);
    if (!series) byStatus.set(status, (series = newSeries(operation, status)));
    series.durations.observe(milliseconds / 1_000);
  }

  /** Adds the metrics of the gateway to those of the process. */
  register(metrics: Metrics, sources: Sources): void {
    const each = (): Series[] => [...this.#series.values()].flatMap((byStatus) => [...byStatus.values()]);
    const labels = ['operation', 'status'];
    metrics.counters('erp_http_requests_total', 'Requests by operation and status.', labels, () =>
      each().map(({ labels: of, durations }): Sample => [of, durations.count]),
    );
    metrics.durations('erp_http_request_duration_seconds', 'Time to answer by operation and status.', labels, () =>
      each().map(({ labels: of, durations }): DurationsSample => [of, durations]),
    );
    metrics.gauge('erp_http_requests_in_flight', 'Requests that are being answered.', sources.inFlight);
    const { deliveries, refusalDelays } = sources;
    metrics.gauge(
      'erp_http_unsent_bytes',
      'Bytes of answers that clients have not taken.',
      () => deliveries.unsentBytes,
    );
    metrics.counters('erp_http_connections_cut_total', 'Connections closed before all was answered.', ['reason'], () =>
      [...deliveries.cut].map(([reason, count]): Sample => [{ reason }, count]),
    );
    metrics.gauge('erp_http_refusals_waiting', 'Answers 429 that are delayed now.', () => refusalDelays.waiting);
    metrics.counter('erp_http_refusals_delayed_total', 'Answers 429 that were delayed.', () => refusalDelays.total);
    metrics.counter(
      'erp_rate_limit_refusals_total',
      'Requests refused by a rate or concurrency limit.',
      sources.refusals,
    );
  }
}

const newSeries = (operation: string, status: number): Series => ({
  labels: { operation, status: String(status) },
  durations: new Durations(BUCKETS_SECONDS),
});
