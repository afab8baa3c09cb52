/**
 * The one door to the metrics of a process: a registry of prom-client, with numbers that are read when Prometheus asks
 * for them. Nothing on the path of a request goes through prom-client; docs/decisions/libraries-off-the-hot-path.md
 * says why.
 */
import { Counter, Gauge, type Metric, Registry } from 'prom-client';

/** Values by label, such as `{ quantile: '0.99' }`. */
export type Sample = readonly [labels: Record<string, string>, value: number];

export class Metrics {
  readonly #registry = new Registry();

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

  /** Any other metric of prom-client. */
  register(metric: Metric): void {
    this.#registry.registerMetric(metric);
  }

  /** All metrics in the text format of Prometheus. */
  async text(): Promise<string> {
    // Without the empty lines that prom-client writes between metrics.
    return (await this.#registry.metrics()).replaceAll('\n\n', '\n');
  }
}
