/**
 * Password hashes are the most expensive thing that a stranger can ask for: 19 MiB and some 30 ms of a processor each,
 * in the thread pool that file system and compression need as well. So only a few run at a time, and what waits is
 * bounded. Those who wait are served in turns by where they come from, and people at a known place before all others: a
 * flood of guesses fills its own share alone.
 */
import { availableParallelism } from 'node:os';

interface QueueLimits {
  concurrency: number;
  /** Waiting from one place, and from all places of a kind. */
  waitingPerPlaceMax: number;
  waitingMax: number;
}

const LIMITS: QueueLimits = {
  // One processor stays for everything else, and of the four threads of the pool as well.
  concurrency: Math.max(1, Math.min(3, availableParallelism() - 1)),
  waitingPerPlaceMax: 40,
  waitingMax: 120,
};

/** Origin of work: `known` is served first and has a share of its own. */
export interface Place {
  name: string;
  known: boolean;
}

/** The work of the platform itself, such as the passwords of new users. */
export const PLATFORM: Place = { name: 'platform', known: true };

/** Nothing more can wait. */
export class QueueFull extends Error {
  override readonly name = 'QueueFull';
}

/** Work that waits, served in turns by the name of its place. */
class Lane {
  readonly #places = new Map<string, (() => void)[]>();
  #waiting = 0;

  hasRoom(name: string, { waitingMax, waitingPerPlaceMax }: QueueLimits): boolean {
    return this.#waiting < waitingMax && (this.#places.get(name)?.length ?? 0) < waitingPerPlaceMax;
  }

  add(name: string, begin: () => void): void {
    const waiting = this.#places.get(name);
    if (waiting) waiting.push(begin);
    else this.#places.set(name, [begin]);
    this.#waiting++;
  }

  next(): (() => void) | undefined {
    const [first] = this.#places;
    if (!first) return undefined;
    const [name, waiting] = first;
    const begin = waiting.shift();
    // To the end of the row, or out of it.
    this.#places.delete(name);
    if (waiting.length > 0) this.#places.set(name, waiting);
    this.#waiting--;
    return begin;
  }
}

export class HashQueue {
  readonly #limits: QueueLimits;
  readonly #known = new Lane();
  readonly #strangers = new Lane();
  #running = 0;

  constructor(limits: Partial<QueueLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  hasRoom({ name, known }: Place): boolean {
    return this.#running < this.#limits.concurrency || this.#lane(known).hasRoom(name, this.#limits);
  }

  /** Throws QueueFull when too much waits already. */
  async run<T>(place: Place, work: () => Promise<T>): Promise<T> {
    if (!this.hasRoom(place)) throw new QueueFull('Too many passwords wait to be checked.');
    if (this.#running < this.#limits.concurrency) this.#running++;
    else await new Promise<void>((begin) => this.#lane(place.known).add(place.name, begin));
    try {
      return await work();
    } finally {
      // The next one takes over the slot; the count changes only when none waits.
      const next = this.#known.next() ?? this.#strangers.next();
      if (next) next();
      else this.#running--;
    }
  }

  #lane(known: boolean): Lane {
    return known ? this.#known : this.#strangers;
  }
}
