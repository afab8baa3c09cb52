/** Reports answered requests: a log line each, and metrics for Prometheus. */
import { Durations } from '../../../mixins/metrics/durations.ts';
import type { DurationsSample, Metrics, Sample } from '../../../mixins/metrics/metrics.ts';
import type { Exchange } from './exchange.ts';
import type { RefusalDelays } from './refusal-delays.ts';
import type { UnsentResponses } from './unsent-responses.ts';

const FLUSH_MS = 100;
const FLUSH_LINES = 500;
/** Lines in a second about requests that cost the caller nothing, and the disk is not endless; of each such status. */
const FREE_LINES_MAX = 50;
const SECOND_MS = 1_000;
/** Refused by a limit, and not carried out because something is away. */
const FREE = [429, 503] as const;

const INFO = 30;
const WARN = 40;
const ERROR = 50;
/** The lowest level of lines that are written, by LOG_LEVEL; without lines for those that are not here. */
const LOWEST: Readonly<Record<string, number>> = { trace: INFO, debug: INFO, info: INFO, warn: WARN, error: ERROR };

const levelOf = (status: number): number => (status < 500 ? INFO : status === 500 ? ERROR : WARN);

/** Requests of one status without a price: those of this second that have a line, and those beyond. */
class FreeLines {
  readonly status: number;
  since = 0;
  lines = 0;
  more = 0;

  constructor(status: number) {
    this.status = status;
  }

  get secondIsOver(): boolean {
    return performance.now() - this.since >= SECOND_MS;
  }
}

/**
 * One JSON line per request, never with tokens, query values or bodies: at level `error` about a 500, at `warn` about
 * what the platform could not do, at `info` about everything else. Lines are gathered and written together: a logger
 * call per request would cost more than the checks.
 */
export class AccessLog {
  readonly #node: string;
  readonly #lowest: number;
  readonly #write: (text: string) => void;
  #lines: string[] = [];
  #timer: NodeJS.Timeout | null = null;
  readonly #free = FREE.map((status) => new FreeLines(status));

  /** `logLevel`: of LOG_LEVEL. */
  constructor(node: string, logLevel = 'info', write: (text: string) => void = (text) => process.stdout.write(text)) {
    this.#node = JSON.stringify(node);
    this.#lowest = LOWEST[logLevel] ?? Number.POSITIVE_INFINITY;
    this.#write = write;
  }

  add(x: Exchange, status: number, milliseconds: number, code: string | null): void {
    const level = levelOf(status);
    if (level < this.#lowest) return;
    const free = this.#free.find((one) => one.status === status);
    if (free && !this.#mayTell(free)) return;
    const { session, clientRequestId, traceparent } = x;
    const known = session
      ? `,"tenant":${JSON.stringify(session.tenantId)},"user":${JSON.stringify(session.userId)},"client":${JSON.stringify(session.clientId)}`
      : '';
    this.#lines.push(
      `{"level":${level},"time":${x.startedAt},"node":${this.#node},"mod":"GATEWAY","requestId":"${x.requestId}"` +
        `${traceparent ? `,"traceparent":"${traceparent}"` : ''}` +
        `${clientRequestId ? `,"clientRequestId":"${clientRequestId}"` : ''},"operationId":"${x.label}","method":"${x.method}"` +
        `,"status":${status},"ms":${milliseconds.toFixed(1)},"ip":${JSON.stringify(x.ip)}${known}${code ? `,"code":"${code}"` : ''},"msg":"request"}\n`,
    );
    if (this.#lines.length >= FLUSH_LINES) this.#writeLines();
    else this.#writeSoon();
  }

  /** Writes everything now, as before a stop. */
  flush(): void {
    for (const free of this.#free) this.#tellMore(free);
    this.#writeLines();
  }

  /** False for one beyond so many in this second; they are counted. */
  #mayTell(free: FreeLines): boolean {
    if (free.secondIsOver) {
      this.#tellMore(free);
      free.since = performance.now();
      free.lines = 0;
    }
    if (free.lines < FREE_LINES_MAX) {
      free.lines++;
      return true;
    }
    free.more++;
    this.#writeSoon();
    return false;
  }

  #tellMore(free: FreeLines): void {
    const { status, more } = free;
    if (more === 0) return;
    free.more = 0;
    const message = status === 429 ? 'more requests refused by limits' : 'more requests not carried out';
    this.#lines.push(
      `{"level":${WARN},"time":${Date.now()},"node":${this.#node},"mod":"GATEWAY","status":${status},"count":${more}` +
        `,"msg":"${message}"}\n`,
    );
  }

  #writeSoon(): void {
    this.#timer ??= setTimeout(() => {
      for (const free of this.#free) if (free.secondIsOver) this.#tellMore(free);
      this.#writeLines();
      if (this.#free.some(({ more }) => more > 0)) this.#writeSoon();
    }, FLUSH_MS).unref();
  }

  #writeLines(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#lines.length === 0) return;
    const text = this.#lines.join('');
    this.#lines = [];
    this.#write(text);
  }
}

const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Requests of one operation with one status. */
interface Series {
  readonly labels: Readonly<Record<'operation' | 'status', string>>;
  readonly durations: Durations;
}

interface Sources {
  /** Requests that are being answered. */
  inFlight: () => number;
  unsentResponses: UnsentResponses;
  refusalDelays: RefusalDelays;
  /** Requests refused by a limit so far. */
  refusals: () => number;
}

/**
 * Counts requests by operation and status, in plain numbers that cost a fraction of those of prom-client; prom-client
 * gets them when Prometheus asks. Source: docs/reference/metrics.md.
 */
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
    const { unsentResponses, refusalDelays } = sources;
    metrics.gauge(
      'erp_http_unsent_bytes',
      'Bytes of answers that clients have not taken.',
      () => unsentResponses.unsentBytes,
    );
    metrics.counters('erp_http_connections_cut_total', 'Connections closed before all was answered.', ['reason'], () =>
      [...unsentResponses.cut].map(([reason, count]): Sample => [{ reason }, count]),
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
