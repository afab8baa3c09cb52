/**
 * A fair queue for a bounded number of places. Each holder, such as a tenant or a network, has a cap of its own and a
 * queue of its own. Queues are served in turn: a holder that has given up a place goes behind the others, so that one
 * with a thousand requests delays another by one piece of work at most. Preferred holders come before all others.
 */

/** On whose account places are held. */
export interface Holder {
  /** Holders of one key are counted together. */
  readonly key: string;
  /** Places that it may hold at a time; default: all. */
  readonly max?: number;
  /** May also take the reserved places. */
  readonly usesReserve?: boolean;
  /** Served before all holders without it, and counted apart from them while it waits. */
  readonly preferred?: boolean;
}

interface QueueLimits {
  readonly places: number;
  /** Places kept for holders that use the reserve; default: none. */
  readonly reserved?: number;
  readonly waitingPerHolder: number;
  /** Of all preferred holders, and of all others; default: any number. */
  readonly waiting?: number;
}

/** `holderFull`, `full`: too many wait, of the holder or in all; `late`: none became free in time. */
interface Refused {
  readonly reason: 'holderFull' | 'full' | 'late';
  /** The holder has all the places that it may have, so its own work blocks it. */
  readonly holdsAll: boolean;
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
  readonly since: number;
  readonly until: number;
}

interface Lane {
  /** Queues with waiting requests, the next one to be served first. */
  readonly turns: Set<Queue>;
  waiting: number;
}

interface Queue {
  readonly holder: Holder;
  readonly max: number;
  readonly lane: Lane;
  held: number;
  readonly waiting: Waiter[];
}

/** Interval of the search for requests that have waited too long. */
const SWEEP_MS = 20;

export class FairQueue {
  readonly #limits: QueueLimits;
  readonly #refusal: (refused: Refused, holder: Holder) => Error;
  readonly #queues = new Map<string, Queue>();
  readonly #preferred: Lane = { turns: new Set(), waiting: 0 };
  readonly #others: Lane = { turns: new Set(), waiting: 0 };
  #held = 0;
  #heldWithoutReserve = 0;
  #sweep: NodeJS.Timeout | null = null;
  /** Totals since the start, for metrics. */
  readonly totals = { waits: 0, waitedMs: 0, refused: 0 };

  /** `refusal`: the error of a request that gets no place. */
  constructor(limits: QueueLimits, refusal: (refused: Refused, holder: Holder) => Error) {
    this.#limits = limits;
    this.#refusal = refusal;
  }

  /** Requests that wait now. */
  get waiting(): number {
    return this.#preferred.waiting + this.#others.waiting;
  }

  /** Places that are held now. */
  get held(): number {
    return this.#held;
  }

  /** Holders that hold a place or wait for one. */
  get holders(): number {
    return this.#queues.size;
  }

  /** A request of the holder would get a place, or could wait for one. */
  hasRoom(holder: Holder): boolean {
    const queue = this.#queues.get(holder.key) ?? this.#queueOf(holder);
    return this.#isFree(queue) || this.#excess(queue) === null;
  }

  /**
   * Takes a place: returns undefined when one is free, else a promise that waits for it, at most `waitMs`. Each place
   * that was taken is given back by `leave`. `first`: the request is the next one of its holder and is never refused,
   * because it holds locks or ends something that has begun.
   */
  enter(
    holder: Holder,
    waitMs = Number.POSITIVE_INFINITY,
    { first = false }: { first?: boolean } = {},
  ): Promise<void> | undefined {
    const queue = this.#queues.get(holder.key) ?? this.#queueOf(holder);
    if (this.#isFree(queue)) {
      this.#take(queue);
      return undefined;
    }
    const reason = first ? null : waitMs <= 0 ? 'late' : this.#excess(queue);
    return reason ? Promise.reject(this.#refuse(reason, queue)) : this.#wait(queue, first ? Infinity : waitMs, first);
  }

  leave({ key }: Holder): void {
    const queue = this.#queues.get(key);
    if (!queue || queue.held === 0) throw new Error(`${key} holds no place.`);
    queue.held--;
    this.#held--;
    if (!queue.holder.usesReserve) this.#heldWithoutReserve--;
    const { turns } = queue.lane;
    if (queue.waiting.length > 0 && turns.delete(queue)) turns.add(queue);
    this.#forget(queue);
    if (this.#preferred.waiting > 0) this.#serve(this.#preferred);
    if (this.#others.waiting > 0) this.#serve(this.#others);
  }

  /** Does the work in a place. */
  async run<T>(holder: Holder, work: () => Promise<T>, waitMs?: number, options?: { first?: boolean }): Promise<T> {
    const waiting = this.enter(holder, waitMs, options);
    if (waiting) await waiting;
    try {
      return await work();
    } finally {
      this.leave(holder);
    }
  }

  /** Known from the first place or wait on: nothing is kept of a holder that was refused. */
  #queueOf(holder: Holder): Queue {
    const lane = holder.preferred ? this.#preferred : this.#others;
    return { holder, max: holder.max ?? Infinity, lane, held: 0, waiting: [] };
  }

  #isFree({ held, max, holder }: Queue): boolean {
    const { places, reserved = 0 } = this.#limits;
    return (
      held < max && this.#held < places && (holder.usesReserve || this.#heldWithoutReserve < places - reserved) === true
    );
  }

  #excess({ waiting, lane }: Queue): 'holderFull' | 'full' | null {
    if (waiting.length >= this.#limits.waitingPerHolder) return 'holderFull';
    return lane.waiting >= (this.#limits.waiting ?? Infinity) ? 'full' : null;
  }

  #take(queue: Queue): void {
    if (queue.held++ === 0) this.#queues.set(queue.holder.key, queue);
    this.#held++;
    if (!queue.holder.usesReserve) this.#heldWithoutReserve++;
  }

  #wait(queue: Queue, waitMs: number, first: boolean): Promise<void> {
    this.#queues.set(queue.holder.key, queue);
    queue.lane.waiting++;
    queue.lane.turns.add(queue);
    this.totals.waits++;
    if (waitMs < Infinity) this.#sweep ??= setInterval(() => this.#refuseLate(), SWEEP_MS);
    return new Promise((resolve, reject) => {
      const since = performance.now();
      const waiter = { resolve, reject, since, until: since + waitMs };
      if (first) queue.waiting.unshift(waiter);
      else queue.waiting.push(waiter);
    });
  }

  /** Gives free places to those who wait, one queue after the other. */
  #serve({ turns }: Lane): void {
    for (const queue of turns) {
      if (this.#held >= this.#limits.places) return;
      if (!this.#isFree(queue)) continue;
      const waiter = queue.waiting.shift();
      turns.delete(queue);
      if (!waiter) continue;
      // Behind the others, which have their turn before this queue is looked at again.
      if (queue.waiting.length > 0) turns.add(queue);
      this.#take(queue);
      this.#ended(queue, waiter);
      waiter.resolve();
    }
  }

  #refuseLate(): void {
    const now = performance.now();
    let waits = false;
    for (const { turns } of [this.#preferred, this.#others])
      for (const queue of turns) {
        for (const waiter of queue.waiting.filter(({ until }) => until <= now)) {
          queue.waiting.splice(queue.waiting.indexOf(waiter), 1);
          this.#ended(queue, waiter);
          waiter.reject(this.#refuse('late', queue));
        }
        if (queue.waiting.length === 0) turns.delete(queue);
        waits ||= queue.waiting.some(({ until }) => until < Infinity);
        this.#forget(queue);
      }
    if (waits || !this.#sweep) return;
    clearInterval(this.#sweep);
    this.#sweep = null;
  }

  #forget({ held, waiting, holder }: Queue): void {
    if (held === 0 && waiting.length === 0) this.#queues.delete(holder.key);
  }

  #ended({ lane }: Queue, { since }: Waiter): void {
    lane.waiting--;
    this.totals.waitedMs += performance.now() - since;
  }

  #refuse(reason: Refused['reason'], { held, max, holder }: Queue): Error {
    this.totals.refused++;
    return this.#refusal({ reason, holdsAll: held >= max }, holder);
  }
}
