/** The largest number of late: of a minute, and of what has passed of the next one. */

const WINDOW_MS = 60_000;

// Several may read it, each as often as it likes: a look takes nothing away that the next one would have seen.
export class RecentMaximum {
  #ofWindow = 0;
  #before = 0;
  #ends: number;

  /** `now`: milliseconds of the monotonic clock, here and below. */
  constructor(now: number) {
    this.#ends = now + WINDOW_MS;
  }

  note(now: number, value: number): void {
    this.#turn(now);
    this.#ofWindow = Math.max(this.#ofWindow, value);
  }

  read(now: number): number {
    this.#turn(now);
    return Math.max(this.#ofWindow, this.#before);
  }

  #turn(now: number): void {
    if (now < this.#ends) return;
    this.#before = now < this.#ends + WINDOW_MS ? this.#ofWindow : 0;
    this.#ofWindow = 0;
    this.#ends = now + WINDOW_MS;
  }
}
