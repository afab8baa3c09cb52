/**
 * The counters of the rate policies: token buckets whose units are leased to gateways in blocks. What a gateway holds
 * counts against the limit until it is spent or given back, so that all gateways together never spend more than the
 * bucket has. Pure: the clock is an argument.
 */

import { LRUCache } from 'lru-cache';
import { isAnonymous, type Lease, type LeaseRequest } from '../../contracts/ratelimit.ts';
import { entryBound } from '../../lib/values/entry-bound.ts';

interface Bucket {
  limit: number;
  windowMs: number;
  tokens: number;
  at: number;
  /** Units leased to gateways and not yet known to be spent. */
  readonly held: Map<string, { units: number; until: number }>;
}

/** A gateway that has not called for this long, or for a whole shorter window, has lost what it held. */
const HELD_MAX_MS = 300_000;

/**
 * Networks of callers who are not signed in that are counted at once: a caller who has many must not fill the memory.
 */
const NETWORKS_MAX = 100_000;

export class Buckets {
  /** Of tenants and connections, of which there are as many as people signed in. */
  readonly #known = new Map<string, Bucket>();
  readonly #networks = new LRUCache<string, Bucket>(entryBound(NETWORKS_MAX));

  get size(): number {
    return this.#known.size + this.#networks.size;
  }

  take(gateway: string, request: LeaseRequest, now: number): Lease {
    const bucket = this.#bucket(request, now);
    const before = bucket.held.get(gateway)?.units ?? 0;
    const returned = Math.min(before, Math.max(0, request.returned ?? 0));
    const kept = Math.min(before - returned, Math.max(0, request.held ?? 0));
    bucket.tokens += returned;
    this.#hold(bucket, gateway, kept, now);
    refill(bucket, now);
    const granted = Math.max(0, Math.min(request.units, Math.floor(bucket.tokens)));
    bucket.tokens -= granted;
    this.#hold(bucket, gateway, kept + granted, now);
    const perMs = bucket.limit / bucket.windowMs;
    return {
      key: request.key,
      granted,
      remaining: Math.floor(bucket.tokens),
      resetSeconds: Math.max(0, Math.ceil((bucket.limit - bucket.tokens) / perMs / 1_000)),
      retryAfterSeconds: granted > 0 ? 0 : Math.max(0, Math.ceil((1 - bucket.tokens) / perMs / 1_000)),
    };
  }

  /** Units that can still be spent: those left in the bucket and those that gateways hold. */
  state(request: LeaseRequest, now: number): Lease {
    const bucket = this.#bucket(request, now);
    refill(bucket, now);
    const remaining = Math.floor(bucket.tokens) + outstanding(bucket);
    const perMs = bucket.limit / bucket.windowMs;
    return {
      key: request.key,
      granted: 0,
      remaining,
      resetSeconds: Math.max(0, Math.ceil((bucket.limit - remaining) / perMs / 1_000)),
      retryAfterSeconds: 0,
    };
  }

  /** Removes buckets that are full again. */
  sweep(now: number): void {
    for (const buckets of [this.#known, this.#networks])
      for (const [key, bucket] of buckets.entries()) {
        refill(bucket, now);
        if (bucket.tokens >= bucket.limit && bucket.held.size === 0) buckets.delete(key);
      }
  }

  #bucket(request: LeaseRequest, now: number): Bucket {
    const windowMs = request.windowSeconds * 1_000;
    const buckets = isAnonymous(request.key) ? this.#networks : this.#known;
    let bucket = buckets.get(request.key);
    if (!bucket) {
      // A counter that moved here from another owner continues where its gateways last saw it.
      const tokens = Math.min(request.limit - (request.held ?? 0), request.known ?? request.limit);
      bucket = { limit: request.limit, windowMs, tokens: Math.max(0, tokens), at: now, held: new Map() };
      buckets.set(request.key, bucket);
    } else if (bucket.limit !== request.limit || bucket.windowMs !== windowMs) {
      bucket.tokens *= request.limit / bucket.limit;
      bucket.limit = request.limit;
      bucket.windowMs = windowMs;
    }
    return bucket;
  }

  #hold(bucket: Bucket, gateway: string, units: number, now: number): void {
    if (units > 0) bucket.held.set(gateway, { units, until: now + Math.min(bucket.windowMs, HELD_MAX_MS) });
    else bucket.held.delete(gateway);
  }
}

function outstanding(bucket: Bucket): number {
  let units = 0;
  for (const one of bucket.held.values()) units += one.units;
  return units;
}

function refill(bucket: Bucket, now: number): void {
  for (const [gateway, one] of bucket.held) if (one.until <= now) bucket.held.delete(gateway);
  const room = Math.max(0, bucket.limit - outstanding(bucket));
  const earned = (Math.max(0, now - bucket.at) * bucket.limit) / bucket.windowMs;
  bucket.tokens = Math.min(room, bucket.tokens + earned);
  bucket.at = now;
}
