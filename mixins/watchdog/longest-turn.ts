/** The longest turn of the event loop of late: of a minute, and of what has passed of the next one. */

/** Milliseconds of time that passed, and of processor time. */
interface Turn {
  readonly ms: number;
  readonly cpuMs: number;
}

const WINDOW_MS = 60_000;
const NONE: Turn = { ms: 0, cpuMs: 0 };

const longer = (one: Turn, other: Turn): Turn => ({
  ms: Math.max(one.ms, other.ms),
  cpuMs: Math.max(one.cpuMs, other.cpuMs),
});

// Reading it changes nothing: several may read, each as often as it likes.
export class LongestTurn {
  #ofWindow = NONE;
  #before = NONE;
  #ends: number;

  constructor(now: number) {
    this.#ends = now + WINDOW_MS;
  }

  note(now: number, turn: Turn): void {
    if (now >= this.#ends) {
      this.#ends = now + WINDOW_MS;
      this.#before = this.#ofWindow;
      this.#ofWindow = NONE;
    }
    const { ms, cpuMs } = this.#ofWindow;
    if (turn.ms > ms || turn.cpuMs > cpuMs) this.#ofWindow = longer(this.#ofWindow, turn);
  }

  get longest(): Turn {
    return longer(this.#ofWindow, this.#before);
  }
}
