/**
 * The one door to the metrics of a process: a registry of prom-client, with numbers that are read when Prometheus asks
 * for them. Nothing on the path of a request goes through prom-client; docs/decisions/libraries-off-the-hot-path.md
 * says why. Every metric is in the tables of docs/reference/metrics.md, and a test compares them.
 */
import { Counter, Gauge, Histogram, type Metric, Registry } from 'prom-client';
import type { Durations } from './durations.ts';

/** Values by label, such as `{ quantile: '0.99' }`. */
export type Sample = readonly [labels: Record<string, string>, value: number];

export type DurationsSample = readonly [labels: Record<string, string>, durations: Durations];

/** A cache's metrics: totals since the start, and its current size. */
export interface CacheNumbers {
  readonly size: number;
  /** Estimated memory; absent: it is bounded by the number of its entries alone. */
  readonly bytes?: number;
  readonly hits: number;
  readonly misses: number;
  /** Entries that had to make room for others. */
  readonly evictions: number;
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #caches: { readonly labels: Record<string, string>; readonly numbers: CacheNumbers }[] = [];

  constructor() {
    this.#registerCaches();
  }

  /** Media type of `text()`. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  /** A number that goes up and down. */
  gauge(name: string, help: string, read: () => number): void {
    this.gauges(name, help, [], () => [[{}, read()]]);
  }

  /** The same with labels, or of a number that is not there at times. */
  gauges(name: string, help: string, labelNames: readonly string[], read: () => Iterable<Sample>): void {
    const collect = function (this: Gauge): void {
      this.reset();
      // Without labels a reset makes it 0.
      if (labelNames.length === 0) this.remove();
      for (const [labels, value] of read()) this.set(labels, value);
    };
    this.register(new Gauge({ name, help, labelNames, registers: [], collect }));
  }

  /** A number that only grows; `read` returns the total. */
  counter(name: string, help: string, read: () => number): void {
    this.counters(name, help, [], () => [[{}, read()]]);
  }

  /** The same with labels. */
  counters(name: string, help: string, labelNames: readonly string[], read: () => Iterable<Sample>): void {
    const collect = function (this: Counter): void {
      this.reset();
      for (const [labels, value] of read()) this.inc(labels, value);
    };
    this.register(new Counter({ name, help, labelNames, registers: [], collect }));
  }

  /** Durations since the start, by labels. */
  durations(name: string, help: string, labelNames: readonly string[], read: () => Iterable<DurationsSample>): void {
    this.register(new CountedDurations(name, help, labelNames, read));
  }

  /** The numbers of a cache of a service, as `erp_cache_…{service, cache}`. */
  cache(service: string, cache: string, numbers: CacheNumbers): void {
    this.#caches.push({ labels: { service, cache }, numbers });
  }

  /** Any other metric of prom-client. Throws when there is one of its name. */
  register(metric: Metric): void {
    this.#registry.registerMetric(metric);
  }

  /** Takes metrics out again: those of a service that stops while its process goes on, and may be created again. */
  unregister(names: readonly string[]): void {
    for (const name of names) this.#registry.removeSingleMetric(name);
  }

  /** All metrics in the text format of Prometheus. */
  async text(): Promise<string> {
    // Without the empty lines that prom-client writes between metrics.
    return (await this.#registry.metrics()).replaceAll('\n\n', '\n');
  }

  #registerCaches(): void {
    const labels = ['service', 'cache'];
    const each = (read: (numbers: CacheNumbers) => number) => (): Sample[] =>
      this.#caches.map((cache) => [cache.labels, read(cache.numbers)]);
    this.gauges(
      'erp_cache_entries',
      'Entries of a cache.',
      labels,
      each(({ size }) => size),
    );
    this.gauges('erp_cache_bytes', 'Estimated memory of a cache that is bounded by it.', labels, () =>
      this.#caches.flatMap(({ labels: of, numbers: { bytes } }): Sample[] =>
        bytes === undefined ? [] : [[of, bytes]],
      ),
    );
    const counter = (name: string, help: string, read: (numbers: CacheNumbers) => number): void =>
      this.counters(name, help, labels, each(read));
    counter('erp_cache_hits_total', 'Questions that a cache answered.', ({ hits }) => hits);
    counter('erp_cache_misses_total', 'Questions that a cache could not answer.', ({ misses }) => misses);
    counter('erp_cache_evictions_total', 'Entries that made room for others.', ({ evictions }) => evictions);
  }
}

/** A histogram whose buckets were counted elsewhere. */
class CountedDurations extends Histogram {
  readonly #name: string;
  readonly #help: string;
  readonly #read: () => Iterable<DurationsSample>;

  constructor(name: string, help: string, labelNames: readonly string[], read: () => Iterable<DurationsSample>) {
    super({ name, help, labelNames, registers: [] });
    this.#name = name;
    this.#help = help;
    this.#read = read;
  }

  /** Called by the registry and by `get`. */
  async getForPromString(): Promise<object> {
    const values: object[] = [];
    for (const sample of this.#read()) values.push(...samplesOf(this.#name, sample));
    return { name: this.#name, help: this.#help, type: 'histogram', aggregator: 'sum', values };
  }
}

function samplesOf(name: string, [labels, { bounds, count, seconds, buckets }]: DurationsSample): object[] {
  let upToBound = 0;
  const cumulated = bounds.map((le, i) => {
    upToBound += buckets[i] ?? 0;
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: upToBound };
  });
  return [
    ...cumulated,
    { metricName: `${name}_bucket`, labels: { ...labels, le: '+Inf' }, value: count },
    { metricName: `${name}_sum`, labels, value: seconds },
    { metricName: `${name}_count`, labels, value: count },
  ];
}
