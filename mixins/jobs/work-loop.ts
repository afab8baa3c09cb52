/**
 * The one loop over a table that is its own queue: it looks for due work at intervals and when it is woken, has a few
 * pieces done at a time, and leaves alone for longer each time what cannot be done. The table says what is due and who
 * has it, so that nothing is lost with a process. Which tables, and why they are no queues of Jobs:
 * docs/decisions/tables-as-queues.md.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { failureOf } from '../database/failures.ts';
import { endsBefore } from '../ends-before.ts';
import { workOn } from '../watchdog/work.ts';

/** `busy`: another worker holds it. `unavailable`: nothing of the kind can be done at the moment. */
type WorkResult = 'done' | 'busy' | 'unavailable';

interface DueWork<T> {
  /** For the log and traces, such as `auth.mails`. */
  readonly label: string;
  readonly lookMs: number;
  /** Pieces that are worked on at a time. */
  readonly concurrency: number;
  /** Due pieces, at most `take`, without those of the keys `left`: they are under way here, or left alone for a while. */
  readonly due: (take: number, left: readonly string[]) => Promise<readonly T[]>;
  readonly keyOf: (piece: T) => string;
  readonly run: (piece: T) => Promise<WorkResult>;
  /** A look (`piece` null) or a piece of work failed; it is tried again. Of an outage the looks say so once. */
  readonly failed: (error: unknown, piece: T | null) => void;
}

/** First and longest time for which a piece, or all of them, are left alone. */
interface BackOff {
  readonly firstMs: number;
  readonly maxMs: number;
}

const REST: BackOff = { firstMs: 1_000, maxMs: 60_000 };
const PAUSE: BackOff = { firstMs: 2_000, maxMs: 60_000 };

const longer = ({ firstMs, maxMs }: BackOff, beforeMs: number): number =>
  Math.min(Math.max(firstMs, 2 * beforeMs), maxMs);

export class WorkLoop<T> {
  /** The loop is no part of the request that wakes it: not of its deadline, its trace, its lines in the log. */
  readonly #outside = AsyncLocalStorage.snapshot();
  readonly #work: DueWork<T>;
  readonly #running = new Map<string, Promise<void>>();
  readonly #resting = new Map<string, { readonly until: number; readonly ms: number }>();
  /** How long nothing is begun, after the last piece was `unavailable`; 0: it was not. */
  #pauseMs = 0;
  #isStopping = false;
  #isFailing = false;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | null = null;
  #again = false;

  constructor(work: DueWork<T>) {
    this.#work = work;
  }

  /** Looks at once: at the start, and when something was added. While all work is `unavailable` it makes no difference. */
  wake(): void {
    if (this.#pauseMs === 0) this.#outside(() => this.#lookAgain());
  }

  /** Takes no more; resolves when what is under way has ended, or after `withinMs`. */
  async stop(withinMs: number): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#timer);
    // A look under way may still claim jobs; they are worked on.
    const ended = Promise.resolve(this.#looking).then(() => Promise.all(this.#running.values()));
    await endsBefore(ended, performance.now() + withinMs);
  }

  #lookAgain(): void {
    if (this.#isStopping) return;
    this.#again = true;
    this.#looking ??= this.#lookUntilDone().finally(() => {
      this.#looking = null;
      if (this.#again) this.#lookAgain();
      else this.#lookAfter(this.#pauseMs || this.#work.lookMs * (0.75 + Math.random() / 2));
    });
  }

  #lookAfter(ms: number): void {
    clearTimeout(this.#timer);
    if (!this.#isStopping) this.#timer = setTimeout(() => this.#lookAgain(), ms).unref();
  }

  async #lookUntilDone(): Promise<void> {
    clearTimeout(this.#timer);
    while (this.#again && !this.#isStopping) {
      this.#again = false;
      try {
        await this.#look();
        this.#isFailing = false;
      } catch (error) {
        if (!this.#isFailing) this.#work.failed(error, null);
        this.#isFailing = true;
      }
    }
  }

  async #look(): Promise<void> {
    const { concurrency, due, keyOf } = this.#work;
    const free = concurrency - this.#running.size;
    if (free <= 0) return;
    const now = performance.now();
    for (const [key, { until }] of this.#resting) if (now - until > REST.maxMs) this.#resting.delete(key);
    const resting = [...this.#resting].filter(([, { until }]) => until > now).map(([key]) => key);
    const pieces = await due(free, [...this.#running.keys(), ...resting]);
    for (const piece of pieces) this.#running.set(keyOf(piece), this.#run(piece));
  }

  async #run(piece: T): Promise<void> {
    const { label, keyOf, run, failed } = this.#work;
    const key = keyOf(piece);
    let result: WorkResult = 'busy';
    try {
      result = await workOn({ label, requestId: null }, () => run(piece));
      if (result === 'busy') this.#rest(key, this.#resting.get(key)?.ms ?? 0);
      else this.#resting.delete(key);
    } catch (error) {
      // A database that fails says so elsewhere, and the work goes on as soon as it is back.
      const isAway = failureOf(error) !== null;
      this.#rest(key, isAway ? 0 : (this.#resting.get(key)?.ms ?? 0));
      if (!this.#isStopping && !isAway) failed(error, piece);
    } finally {
      this.#running.delete(key);
      this.#pauseMs = result === 'unavailable' ? longer(PAUSE, this.#pauseMs) : 0;
      if (this.#pauseMs > 0) this.#lookAfter(this.#pauseMs);
      else this.#lookAgain();
    }
  }

  /** Or the next look would find it at once, and the next, for as long as only others may have it. */
  #rest(key: string, beforeMs: number): void {
    const ms = longer(REST, beforeMs);
    this.#resting.set(key, { until: performance.now() + ms, ms });
  }
}
