/**
 * Counts requests by operation and status, in plain numbers that cost a fraction of those of prom-client; prom-client
 * gets them when Prometheus asks. Source: docs/reference/operations.md, "Metrics".
 */
import { Histogram } from 'prom-client';
import type { Metrics, Sample } from '../../mixins/metrics/metrics.ts';
import type { Deliveries } from './deliveries.ts';
import type { RefusalDelays } from './refusal-delays.ts';

const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const DURATION = 'erp_http_request_duration_seconds';

/** Requests of one operation with one status. */
interface Series {
  readonly operation: string;
  readonly status: string;
  seconds: number;
  count: number;
  /** Requests per bucket, not cumulated; the last one is beyond the largest bound. */
  readonly buckets: Uint32Array;
}

export interface Sources {
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
    const seconds = milliseconds / 1_000;
    series.count++;
    series.seconds += seconds;
    let bucket = 0;
    for (const bound of BUCKETS_SECONDS) {
      if (seconds <= bound) break;
      bucket++;
    }
    const before = series.buckets[bucket] ?? 0;
    series.buckets[bucket] = before + 1;
  }

  /** Adds the metrics of the gateway to those of the process. */
  register(metrics: Metrics, sources: Sources): void {
    const each = (): Series[] => [...this.#series.values()].flatMap((byStatus) => [...byStatus.values()]);
    const totals = (): Sample[] => each().map(({ operation, status, count }) => [{ operation, status }, count]);
    metrics.counters('erp_http_requests_total', 'Requests by operation and status.', ['operation', 'status'], totals);
    metrics.register(new RequestDurations(each));
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

function newSeries(operation: string, status: number): Series {
  return {
    operation,
    status: String(status),
    seconds: 0,
    count: 0,
    buckets: new Uint32Array(BUCKETS_SECONDS.length + 1),
  };
}

const HELP = 'Time to answer by operation and status.';

/** A histogram whose buckets were counted elsewhere. */
class RequestDurations extends Histogram {
  readonly #series: () => readonly Series[];

  constructor(series: () => readonly Series[]) {
    super({ name: DURATION, help: HELP, labelNames: ['operation', 'status'], buckets: BUCKETS_SECONDS, registers: [] });
    this.#series = series;
  }

  /** Called by the registry and by `get`. */
  async getForPromString(): Promise<object> {
    const values = this.#series().flatMap(samplesOf);
    return { name: DURATION, help: HELP, type: 'histogram', aggregator: 'sum', values };
  }
}

function samplesOf({ operation, status, seconds, count, buckets }: Series): object[] {
  const labels = { operation, status };
  let upToBound = 0;
  const bounds = BUCKETS_SECONDS.map((le, i) => {
    upToBound += buckets[i] ?? 0;
    return { metricName: `${DURATION}_bucket`, labels: { ...labels, le }, value: upToBound };
  });
  return [
    ...bounds,
    { metricName: `${DURATION}_bucket`, labels: { ...labels, le: '+Inf' }, value: count },
    { metricName: `${DURATION}_sum`, labels, value: seconds },
    { metricName: `${DURATION}_count`, labels, value: count },
  ];
}
