/**
 * Work of a request that keeps the event loop for long, done in pieces with pauses between them: of all the pieces that
 * wait only one is done at a time, and afterwards the others get twice the time that it took. Short requests wait for
 * one piece then, and not for all of them. Source: docs/reference/operations.md, "Stalls".
 */

/** How long a piece is meant to be. */
const PIECE_MS = 3;
/** Time of the others after each piece, and per time that the piece took: enough for a short request. */
const PAUSE_MS = 5;
const PAUSE_PER_MS = 2;

const waiting: (() => void)[] = [];
let running = false;

/** Resolves when a piece may be done. */
export function nextPiece(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (!running) release();
  });
}

function release(): void {
  const piece = waiting.shift();
  running = piece !== undefined;
  if (!piece) return;
  const begun = performance.now();
  piece();
  // Behind the piece, which goes on as soon as this turn of the event loop lets it.
  setImmediate(() => setTimeout(release, PAUSE_MS + PAUSE_PER_MS * (performance.now() - begun)));
}

/** Work that may be long or short. While it is short, giving way costs a look at the clock. */
export class LongWork {
  #begun = performance.now();

  /** Waits for a turn, whatever has been done so far: before work that is known to be long. */
  async turn(): Promise<void> {
    await nextPiece();
    this.#begun = performance.now();
  }

  /** To be asked between pieces: whether `turn` should be awaited before the next. */
  get isLong(): boolean {
    return performance.now() - this.#begun > PIECE_MS;
  }
}
