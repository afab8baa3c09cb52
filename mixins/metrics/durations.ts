/**
 * A histogram in plain numbers, which cost a fraction of those of prom-client; prom-client gets them when Prometheus asks.
 * docs/decisions/libraries-off-the-hot-path.md says why.
 */

export class Durations {
  /** Upper bounds in seconds, ascending. */
  readonly bounds: readonly number[];
  count = 0;
  /** Of all together. */
  seconds = 0;
  /** How many per bucket, not cumulated; the last one is beyond the largest bound. */
  readonly buckets: Uint32Array;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.buckets = new Uint32Array(bounds.length + 1);
  }

  observe(seconds: number): void {
    this.count++;
    this.seconds += seconds;
    let bucket = 0;
    for (const bound of this.bounds) {
      if (seconds <= bound) break;
      bucket++;
    }
    const before = this.buckets[bucket] ?? 0;
    this.buckets[bucket] = before + 1;
  }
}
