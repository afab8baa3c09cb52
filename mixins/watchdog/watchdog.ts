/**
 * Notices when one piece of work stops the event loop, and with it every other request of the process. Each stall is
 * logged with the operation that most likely made it, and counted for Prometheus.
 * Source: docs/reference/operations.md, "Stalls".
 */
import { Durations } from '../metrics/durations.ts';
import type { Metrics, Sample } from '../metrics/metrics.ts';
import { RecentMaximum } from '../metrics/recent-maximum.ts';
import { stretchesBetween } from './work.ts';

export const TICK_MS = 20;
/** Shortest stall that is logged and counted. */
export const STALL_MS = 200;
const OTHERS_MAX = 4;
const DELAY_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 10];

export interface Stall {
  /** Milliseconds for which nothing else could be done. */
  readonly ms: number;
  /** Processor time of the thread meanwhile. Far less than `ms`: the machine had no time for the process. */
  readonly cpuMs: number;
  /** The operation, action, event or queue at work; `unknown` when none was. */
  readonly operation: string;
  readonly requestId: string | null;
  /** Others that were at work in the same time. */
  readonly others: readonly string[];
}

/** Milliseconds: of time that passes, and of processor time of this thread. */
interface Clock {
  now(): number;
  cpuMs(): number;
}

const CLOCK: Clock = { now: () => performance.now(), cpuMs: threadCpuMs };

export class Watchdog {
  readonly #report: (stall: Stall) => void;
  readonly #clock: Clock;
  readonly #timer: NodeJS.Timeout;
  readonly #stalls = new Map<string, { count: number; seconds: number }>();
  #ticked: number;
  #cpu: number;
  readonly #delays = new Durations(DELAY_BUCKETS_SECONDS);
  readonly #longest: Readonly<Record<'wall' | 'processor', RecentMaximum>>;

  constructor(report: (stall: Stall) => void, clock = CLOCK) {
    this.#report = report;
    this.#clock = clock;
    this.#ticked = clock.now();
    this.#longest = { wall: new RecentMaximum(this.#ticked), processor: new RecentMaximum(this.#ticked) };
    this.#cpu = clock.cpuMs();
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
  }

  register(metrics: Metrics): void {
    const totals = (of: 'count' | 'seconds'): Sample[] =>
      [...this.#stalls].map(([operation, stall]) => [{ operation }, stall[of]]);
    metrics.counters(
      'erp_event_loop_stalls_total',
      `Stalls of the event loop over ${STALL_MS} ms by the operation that made them.`,
      ['operation'],
      () => totals('count'),
    );
    metrics.counters('erp_event_loop_stall_seconds_total', 'Time lost in these stalls.', ['operation'], () =>
      totals('seconds'),
    );
    metrics.durations(
      'erp_event_loop_delay_seconds',
      'By how much a timer that is due every 20 ms was late.',
      [],
      () => [[{}, this.#delays]],
    );
    metrics.gauges(
      'erp_event_loop_longest_turn_seconds',
      'Longest turn of the event loop in the last one to two minutes, as time passed and as processor time.',
      ['clock'],
      () => Object.entries(this.#longest).map(([clock, ms]) => [{ clock }, ms.read(this.#clock.now()) / 1_000]),
    );
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const now = this.#clock.now();
    const cpu = this.#clock.cpuMs();
    const ms = now - this.#ticked - TICK_MS;
    const cpuMs = Math.min(cpu - this.#cpu, now - this.#ticked);
    const since = this.#ticked;
    this.#ticked = now;
    this.#cpu = cpu;
    this.#delays.observe(Math.max(0, ms) / 1_000);
    this.#longest.wall.note(now, ms);
    this.#longest.processor.note(now, cpuMs);
    if (ms >= STALL_MS) this.#note(since, now, ms, cpuMs);
  }

  #note(since: number, now: number, ms: number, cpuMs: number): void {
    const [longest, ...others] = stretchesBetween(since, now);
    const operation = longest?.work.label ?? 'unknown';
    const total = this.#stalls.get(operation) ?? { count: 0, seconds: 0 };
    this.#stalls.set(operation, { count: total.count + 1, seconds: total.seconds + ms / 1_000 });
    const labels = new Set(others.map(({ work }) => work.label));
    labels.delete(operation);
    this.#report({
      ms: Math.round(ms),
      cpuMs: Math.round(cpuMs),
      operation,
      requestId: longest?.work.requestId ?? null,
      others: [...labels].slice(0, OTHERS_MAX),
    });
  }
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
