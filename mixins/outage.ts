/**
 * A state in which something is not there, as the log tells of it: a line when it begins and one when it ends. A state
 * that comes and goes is logged at intervals, and one that lasts is always logged.
 */

/** Minimum interval between outage log lines. */
const PAUSE_MS = 30_000;

interface OutageLines {
  readonly began: (reason: string) => void;
  readonly ended: (seconds: number) => void;
}

export class Outage {
  readonly #lines: OutageLines;
  readonly #pauseMs: number;
  #since: number | null = null;
  #isTold = false;
  #toldAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(lines: OutageLines, pauseMs = PAUSE_MS) {
    this.#lines = lines;
    this.#pauseMs = pauseMs;
  }

  get lasts(): boolean {
    return this.#since !== null;
  }

  /** Nothing happens when it has begun already. */
  begin(reason = ''): void {
    if (this.#since !== null) return;
    const now = performance.now();
    this.#since = now;
    const wait = this.#toldAt + this.#pauseMs - now;
    if (wait <= 0) this.#tell(reason);
    else this.#timer = setTimeout(() => this.#tell(reason), wait).unref();
  }

  /** Nothing happens when it has not begun. */
  end(): void {
    if (this.#since === null) return;
    clearTimeout(this.#timer);
    const seconds = (performance.now() - this.#since) / 1_000;
    this.#since = null;
    if (!this.#isTold) return;
    this.#isTold = false;
    this.#lines.ended(Math.round(seconds * 10) / 10);
  }

  #tell(reason: string): void {
    this.#isTold = true;
    this.#toldAt = performance.now();
    this.#lines.began(reason);
  }
}
