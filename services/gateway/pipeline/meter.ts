/**
 * One rate counter on this gateway: the units that it has leased and spends without a call, and the units that the
 * owner reported as left. When the owner cannot be reached, the meter spends this gateway's share of the limit, never
 * more.
 */
import type { Lease, RatePolicy } from '../../../contracts/ratelimit.ts';

/** Share of a limit that is leased at a time. */
const BLOCK = 0.02;
const STALE_MS = 1_000;
const EMPTY_PAUSE_MS = 50;

export class Meter {
  policy: RatePolicy;
  /** Leased and unspent. */
  held = 0;
  ownerRemaining: number;
  leasedAt: number;
  usedAt: number;
  /** Units that requests are waiting for. */
  wanted = 0;
  pending: Promise<void> | null = null;
  #emptyUntil = 0;
  #local: { share: number; tokens: number; at: number } | null = null;

  constructor(policy: RatePolicy, now: number) {
    this.policy = policy;
    this.ownerRemaining = policy.limit;
    this.leasedAt = now;
    this.usedAt = now;
  }

  /** The limit has changed, and with it what is left. How long nothing was to be had was said about the old one. */
  rebind(policy: RatePolicy): void {
    this.ownerRemaining = Math.max(0, this.ownerRemaining + policy.limit - this.policy.limit);
    this.policy = policy;
    this.#emptyUntil = 0;
  }

  get perMs(): number {
    return this.policy.limit / (this.policy.windowSeconds * 1_000);
  }

  has(cost: number, now: number): boolean {
    if (this.held >= cost) return true;
    const local = this.#local;
    if (!local) return false;
    local.tokens = Math.min(
      local.share,
      local.tokens + ((now - local.at) * local.share) / (this.policy.windowSeconds * 1_000),
    );
    local.at = now;
    return this.held + local.tokens >= cost;
  }

  /** Only after `has`. */
  spend(cost: number, now: number): void {
    this.usedAt = now;
    const fromHeld = this.#local ? Math.min(this.held, cost) : cost;
    this.held -= fromHeld;
    if (this.#local) this.#local.tokens -= cost - fromHeld;
  }

  /** Spends what may not be there: the rest is a debt, at most that of a whole window, which the next lease pays. */
  owe(cost: number, now: number): void {
    this.spend(cost, now);
    this.held = Math.max(this.held, -this.policy.limit);
    if (this.#local) this.#local.tokens = Math.max(this.#local.tokens, -this.#local.share);
  }

  /** Whole units that can be spent now, to within what other gateways hold. */
  remaining(now: number): number {
    if (this.#local) return Math.max(0, Math.floor(this.held + this.#local.tokens));
    const age = now - this.leasedAt;
    const earned = age > STALE_MS ? age * this.perMs : 0;
    return Math.max(0, Math.min(this.policy.limit, Math.floor(this.held + this.ownerRemaining + earned)));
  }

  /** Units to lease: those that requests wait for and a block ahead, less when the owner has few left. */
  ask(): number {
    const ahead = Math.max(1, Math.floor(Math.min(this.policy.limit * BLOCK, this.ownerRemaining / 4)));
    return Math.max(0, Math.ceil(this.wanted + ahead - this.held));
  }

  /** True when it is time to lease in the background. */
  low(now: number): boolean {
    if (this.pending || now < this.#emptyUntil) return false;
    if (this.#local) return true;
    return this.held < (this.policy.limit * BLOCK) / 4 ? this.ownerRemaining >= 1 : now - this.leasedAt > STALE_MS;
  }

  /** The owner reported a moment ago that no units are left. */
  empty(now: number): boolean {
    return now < this.#emptyUntil;
  }

  /** `asked`: the units that were wanted; none when only what is held was asked for, or given some back. */
  granted(lease: Lease, asked: number, now: number): void {
    this.held += lease.granted + Math.min(0, this.#local?.tokens ?? 0);
    this.#local = null;
    this.ownerRemaining = lease.remaining;
    this.leasedAt = now;
    if (asked === 0) return;
    this.#emptyUntil = lease.granted === 0 && this.wanted > 0 ? now + Math.max(EMPTY_PAUSE_MS, 1 / this.perMs) : 0;
  }

  /** The owner cannot be reached: continue with one gateway's share. */
  alone(gateways: number, now: number): void {
    const share = this.policy.limit / Math.max(1, gateways);
    if (this.#local) return;
    // A debt is kept, so that time pays it off.
    const tokens = Math.min(share, this.ownerRemaining) + Math.min(0, this.held);
    this.#local = { share, tokens: Math.max(-share, tokens), at: now };
    this.held = Math.max(0, this.held);
  }

  get isAlone(): boolean {
    return this.#local !== null;
  }

  /** Seconds until `cost` units are free, at most a window: what costs more than the whole limit never is. */
  retryAfterSeconds(cost: number, now: number): number {
    const missing = cost - this.held - (this.#local?.tokens ?? this.ownerRemaining);
    const seconds = missing / this.perMs / 1_000 - (now - this.leasedAt) / 1_000;
    return Math.min(this.policy.windowSeconds, Math.max(1, Math.ceil(seconds)));
  }
}
