/**
 * A repeatable source of choices: the same seed gives the same sequence on every machine and in every run. Made for
 * sample data, never for anything that must be unpredictable.
 */
export class Choices {
  #state: number;

  /** `seed` is any text, such as `demo/Account`. */
  constructor(seed: string) {
    let hash = 2_166_136_261;
    for (let i = 0; i < seed.length; i++) hash = Math.imul(hash ^ seed.charCodeAt(i), 16_777_619);
    this.#state = hash >>> 0;
  }

  /** A number from 0 (included) to 1 (excluded). Mulberry32. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** An integer from `low` to `high`, both included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.fraction() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  /** One of a list that is not empty; the first ones more often when `bias` is above 1. */
  one<T>(list: readonly T[], bias = 1): T {
    const found = list[Math.floor(this.fraction() ** bias * list.length)];
    if (found === undefined) throw new Error('There is nothing to choose from.');
    return found;
  }

  /** One of the values, in proportion to its weight. */
  weighted<T>(entries: readonly (readonly [value: T, weight: number])[]): T {
    let rest = this.fraction() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [value, weight] of entries) {
      rest -= weight;
      if (rest < 0) return value;
    }
    const last = entries.at(-1);
    if (!last) throw new Error('There is nothing to choose from.');
    return last[0];
  }
}
