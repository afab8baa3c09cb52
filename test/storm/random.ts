/** Random numbers that a seed decides, so that a storm can be run again. */

export interface Random {
  /** At least 0, below 1. */
  next(): number;
  /** An integer of `least` to `most`. */
  integer(least: number, most: number): number;
  pick<T>(list: readonly T[]): T;
  /** True with this probability. */
  chance(probability: number): boolean;
}

/** A stream of its own for each `purpose`, so that one user of random numbers does not shift those of another (mulberry32). */
export function randomOf(seed: number, purpose: string): Random {
  let state = seed >>> 0;
  for (const letter of purpose) state = Math.imul(state ^ letter.codePointAt(0)!, 0x01000193) >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const integer = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1));
  return {
    next,
    integer,
    pick: (list) => list[integer(0, list.length - 1)]!,
    chance: (probability) => next() < probability,
  };
}
