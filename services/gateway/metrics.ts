/** Counters of this gateway in the Prometheus text format. Source: docs/reference/operations.md, "Metrics". */
import { monitorEventLoopDelay } from 'node:perf_hooks';

const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

interface Series {
  count: number;
  seconds: number;
  readonly buckets: number[];
}

export interface Gauges {
  inFlight: number;
  refusals: number;
  /** 1: the bus is connected, or not needed. */
  bus: number;
  nodes: number;
}

export class Metrics {
  readonly #requests = new Map<string, Map<number, Series>>();
  readonly #delay = monitorEventLoopDelay({ resolution: 20 });
  readonly #startedAt = Date.now();

  constructor() {
    this.#delay.enable();
  }

  observe(label: string, status: number, milliseconds: number): void {
    let byStatus = this.#requests.get(label);
    if (!byStatus) this.#requests.set(label, (byStatus = new Map()));
    let series = byStatus.get(status);
    if (!series)
      byStatus.set(status, (series = { count: 0, seconds: 0, buckets: new Array(BUCKETS_SECONDS.length).fill(0) }));
    const seconds = milliseconds / 1_000;
    series.count++;
    series.seconds += seconds;
    for (let i = 0; i < BUCKETS_SECONDS.length; i++)
      if (seconds <= BUCKETS_SECONDS[i]!) {
        series.buckets[i]!++;
        break;
      }
  }

  text(gauges: Gauges): string {
    const lines: string[] = [];
    const head = (name: string, type: string, help: string): void => {
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
    };
    head('erp_http_requests_total', 'counter', 'Requests by operation and status.');
    this.#each((labels, series) => lines.push(`erp_http_requests_total{${labels}} ${series.count}`));
    head('erp_http_request_duration_seconds', 'histogram', 'Time to answer by operation and status.');
    this.#each((labels, series) => {
      let sum = 0;
      for (const [i, le] of BUCKETS_SECONDS.entries())
        lines.push(`erp_http_request_duration_seconds_bucket{${labels},le="${le}"} ${(sum += series.buckets[i]!)}`);
      lines.push(
        `erp_http_request_duration_seconds_bucket{${labels},le="+Inf"} ${series.count}`,
        `erp_http_request_duration_seconds_sum{${labels}} ${series.seconds.toFixed(6)}`,
        `erp_http_request_duration_seconds_count{${labels}} ${series.count}`,
      );
    });
    const gauge = (name: string, help: string, value: number): void => {
      head(name, 'gauge', help);
      lines.push(`${name} ${value}`);
    };
    gauge('erp_http_requests_in_flight', 'Requests that are being answered.', gauges.inFlight);
    head('erp_rate_limit_refusals_total', 'counter', 'Requests refused by a rate or concurrency limit.');
    lines.push(`erp_rate_limit_refusals_total ${gauges.refusals}`);
    gauge('erp_bus_connected', '1 when the message bus is connected or not needed.', gauges.bus);
    gauge('erp_bus_nodes', 'Available nodes, this one included.', gauges.nodes);
    head('erp_event_loop_delay_seconds', 'summary', 'Delay of the event loop since the last reading.');
    for (const q of [50, 99])
      lines.push(
        `erp_event_loop_delay_seconds{quantile="${q / 100}"} ${(this.#delay.percentile(q) / 1e9 || 0).toFixed(6)}`,
      );
    this.#delay.reset();
    const memory = process.memoryUsage();
    gauge('process_resident_memory_bytes', 'Resident memory.', memory.rss);
    gauge('process_heap_used_bytes', 'JavaScript heap in use.', memory.heapUsed);
    const cpu = process.cpuUsage();
    head('process_cpu_seconds_total', 'counter', 'CPU time.');
    lines.push(`process_cpu_seconds_total ${((cpu.user + cpu.system) / 1e6).toFixed(3)}`);
    gauge('process_start_time_seconds', 'Start of the gateway since 1970.', this.#startedAt / 1_000);
    return `${lines.join('\n')}\n`;
  }

  close(): void {
    this.#delay.disable();
  }

  #each(visit: (labels: string, series: Series) => void): void {
    for (const [label, byStatus] of this.#requests)
      for (const [status, series] of byStatus) visit(`operation="${label}",status="${status}"`, series);
  }
}
