/**
 * Budget of a caller: the meters of its policies and its requests in flight. A request that a limit refuses
 * costs nothing. Source: docs/reference/limits.md.
 */

import { LRUCache } from 'lru-cache';
import type { GrantState } from '../../../contracts/auth.ts';
import {
  anonymousPolicy,
  COSTLY_UNITS,
  calendarPolicy,
  concurrencyLimits,
  connectionPolicies,
  documentsPolicy,
  isAnonymous,
  type Lease,
  type LeaseRequest,
  type RateDefaults,
  type RatePolicy,
} from '../../../contracts/ratelimit.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { entryBound } from '../../../lib/values/entry-bound.ts';
import { Meter } from './meter.ts';

/** Asks the owners of the counters; answers in the order of the requests. */
type TakeLeases = (requests: LeaseRequest[]) => Promise<(Lease | undefined)[]>;

export interface Budget {
  readonly meters: readonly [Meter, ...Meter[]];
  readonly policyHeader: string;
  readonly flight: Flight;
}

/** A caller's state in this gateway. */
interface Flight {
  /** Requests in flight, and those of them that cost much. */
  all: number;
  costly: number;
  /** Bytes of answers that the caller has not taken. */
  unsentBytes: number;
  /** Its refusals in a row, as edge/refusal-delays.ts counts them. */
  ignored: number;
  retryAt: number;
  refusedSince: number;
  readonly shared: boolean;
}

/** A budget with limits of requests in flight. */
interface Bounded extends Budget {
  readonly limits: { all: number; costly: number };
}

export interface Connection extends Bounded {
  readonly key: string;
  readonly grant: GrantState;
}

const UNUSED = { all: 0, costly: 0, unsentBytes: 0, ignored: 0, retryAt: 0, refusedSince: 0 };
const IDLE_RETURN_MS = 2_000;
const IDLE_FORGET_MS = 120_000;
const ALONE_MS = 1_000;
const ATTEMPTS_MAX = 5;
const POLLS_MAX = 50_000;
/**
 * Networks of callers who are not signed in that are counted at once: a caller who has many must not fill the memory.
 */
const NETWORKS_MAX = 50_000;
/** Signed-in callers whose requests in flight are counted at once. */
const FLIGHTS_MAX = 100_000;
/** Leases that go back in one sweep: together they are one message. */
const RETURNS_MAX = 1_000;

export class Budgets {
  readonly #defaults: RateDefaults;
  readonly #take: TakeLeases;
  readonly #gateways: () => number;
  readonly #now: () => number;
  readonly #known = new Map<string, Meter>();
  readonly #networks = new LRUCache<string, Meter>(entryBound(NETWORKS_MAX));
  readonly #flights = new LRUCache<string, Flight>(entryBound(FLIGHTS_MAX));
  /** Apart from those, which a flood from many networks must not push out. */
  readonly #flightsOfNetworks = new LRUCache<string, Flight>(entryBound(NETWORKS_MAX));
  readonly #polls = new LRUCache<string, number>(entryBound(POLLS_MAX));
  #asking: { meter: Meter; request: LeaseRequest | null; done: () => void }[] = [];
  /** Reused for further requests: most of a refusal's cost is its stack trace. */
  readonly #lastRefusal = new WeakMap<Meter, PlatformError>();
  #aloneUntil = 0;
  refusals = 0;

  constructor(
    defaults: RateDefaults,
    take: TakeLeases,
    gateways: () => number,
    now: () => number = () => performance.now(),
  ) {
    this.#defaults = defaults;
    this.#take = take;
    this.#gateways = gateways;
    this.#now = now;
  }

  /** Budget of one (tenant, client, user) under the limits its grant says. */
  connection(who: { tenantId: string; clientId: string; userId: string }, grant: GrantState): Connection {
    const policies = connectionPolicies(this.#defaults, who, grant.rateLimits);
    const [narrowest, ...wider] = policies;
    const { key } = narrowest;
    return {
      key,
      grant,
      flight: this.#flight(key),
      limits: concurrencyLimits(this.#defaults, grant.rateLimits),
      meters: [this.#meter(narrowest), ...wider.map((policy) => this.#meter(policy))],
      policyHeader: policyHeader(policies),
    };
  }

  anonymous(ip: string): Budget {
    return this.#ofPolicy(anonymousPolicy(this.#defaults, ip));
  }

  /** For public documents. */
  documents(ip: string): Budget {
    return this.#ofPolicy(documentsPolicy(this.#defaults, ip));
  }

  /** Of the link to a user's calendar. */
  calendar(user: { tenantId: string; userId: string }): Bounded {
    const max = LIMITS.calendar_link_concurrent_max;
    return { ...this.#ofPolicy(calendarPolicy(user)), limits: { all: max, costly: max } };
  }

  #ofPolicy(policy: RatePolicy): Budget {
    return { meters: [this.#meter(policy)], policyHeader: policyHeader([policy]), flight: this.#flight(policy.key) };
  }

  /** Spends `cost` on every meter of the budget or on none. Throws RATE_LIMIT_EXCEEDED or DAILY_LIMIT_EXCEEDED. */
  charge(budget: Budget, cost: number): Promise<void> | undefined {
    if (cost === 0) return undefined;
    const now = this.#now();
    for (const meter of budget.meters) if (!meter.has(cost, now)) return this.#chargeAfterLease(budget, cost);
    this.#spend(budget, cost, now);
    return undefined;
  }

  /**
   * Spends what a request turned out to cost beyond its price. The request was let through; what is not there any more
   * the next ones wait for.
   */
  settle(budget: Budget, cost: number): void {
    const now = this.#now();
    this.#onEach(budget, now, (meter) => meter.owe(cost, now));
  }

  /** Counts a request in flight. Returns what ends it; throws CONCURRENCY_LIMIT_EXCEEDED. */
  enter({ flight, limits }: Bounded, cost: number): () => void {
    const costly = cost >= COSTLY_UNITS;
    const max = flight.all >= limits.all ? limits.all : costly && flight.costly >= limits.costly ? limits.costly : null;
    if (max !== null) {
      this.refusals++;
      throw new PlatformError('CONCURRENCY_LIMIT_EXCEEDED', `At most ${max} such requests may be in flight.`, {
        details: { max },
        retryAfterSeconds: 1,
      });
    }
    flight.all++;
    if (costly) flight.costly++;
    return () => {
      flight.all--;
      if (costly) flight.costly--;
    };
  }

  /** Tells the owners what is still held here, so that their view of the budget is exact. */
  async report(budget: Budget): Promise<void> {
    await Promise.all(
      budget.meters.map(async (meter) => {
        // Units on their way count as held, too.
        await meter.pending;
        await new Promise<void>((done) => this.#ask(meter, { ...base(meter), units: 0, held: meter.held }, done));
      }),
    );
  }

  /** True when reading this id is free: once per second. */
  freePoll(key: string): boolean {
    const now = this.#now();
    const last = this.#polls.get(key);
    if (last !== undefined && now - last < 1_000) return false;
    this.#polls.set(key, now);
    return true;
  }

  /** Once a second: unused leases go back, idle meters are forgotten. */
  sweep(): void {
    const now = this.#now();
    let returns = 0;
    for (const meters of [this.#known, this.#networks])
      for (const [key, meter] of meters.entries()) {
        if (meter.pending) continue;
        const idle = now - meter.usedAt;
        if (idle > IDLE_RETURN_MS && meter.held > 0 && !meter.isAlone) {
          if (++returns > RETURNS_MAX) continue;
          const returned = meter.held;
          meter.held = 0;
          this.#ask(meter, { ...base(meter), units: 0, returned, held: 0 });
        } else if (idle > IDLE_FORGET_MS) meters.delete(key);
      }
  }

  /** Gives everything back before this gateway stops. */
  async close(): Promise<void> {
    const requests: LeaseRequest[] = [];
    for (const meter of [...this.#known.values(), ...this.#networks.values()])
      if (meter.held > 0) requests.push({ ...base(meter), units: 0, returned: meter.held, held: 0 });
    if (requests.length) await this.#take(requests).catch(() => {});
  }

  #flight(key: string): Flight {
    const shared = isAnonymous(key);
    const flights = shared ? this.#flightsOfNetworks : this.#flights;
    let flight = flights.get(key);
    if (!flight) flights.set(key, (flight = { ...UNUSED, shared }));
    return flight;
  }

  #meter(policy: RatePolicy): Meter {
    const meters = isAnonymous(policy.key) ? this.#networks : this.#known;
    let meter = meters.get(policy.key);
    if (!meter) meters.set(policy.key, (meter = new Meter(policy, this.#now())));
    else if (meter.policy.limit !== policy.limit) meter.rebind(policy);
    meter.usedAt = this.#now();
    return meter;
  }

  #spend(budget: Budget, cost: number, now: number): void {
    this.#onEach(budget, now, (meter) => meter.spend(cost, now));
  }

  /** Leases in the background what the change leaves low, so that the next requests need not wait. */
  #onEach(budget: Budget, now: number, change: (meter: Meter) => void): void {
    for (const meter of budget.meters) {
      change(meter);
      if (meter.low(now)) void this.#lease(meter);
    }
  }

  async #chargeAfterLease(budget: Budget, cost: number): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const short = budget.meters.filter((meter) => !meter.has(cost, this.#now()));
      if (short.length === 0) {
        this.#spend(budget, cost, this.#now());
        return;
      }
      const refused = short.find((meter) => meter.empty(this.#now()) || (meter.isAlone && this.#isAlone()));
      if (refused) this.#refuse(refused, cost);
      for (const meter of short) meter.wanted += cost;
      try {
        await Promise.all(short.map((meter) => this.#lease(meter)));
      } finally {
        for (const meter of short) meter.wanted -= cost;
      }
      const still = short.find((meter) => !meter.has(cost, this.#now()) && meter.ownerRemaining < 1);
      if (still) this.#refuse(still, cost);
    }
    this.#refuse(budget.meters.find((meter) => !meter.has(cost, this.#now())) ?? budget.meters[0], cost);
  }

  #isAlone(): boolean {
    return this.#now() < this.#aloneUntil;
  }

  #lease(meter: Meter): Promise<void> {
    if (meter.pending) return meter.pending;
    const now = this.#now();
    if (this.#isAlone()) {
      meter.alone(this.#gateways(), now);
      return Promise.resolve();
    }
    meter.pending = new Promise((resolve) => {
      const done = (): void => {
        meter.pending = null;
        resolve();
      };
      this.#ask(meter, null, done);
    });
    return meter.pending;
  }

  /** Gathers the lease requests of one turn of the event loop into one call. */
  #ask(meter: Meter, request: LeaseRequest | null, done: () => void = () => {}): void {
    if (this.#asking.push({ meter, request, done }) === 1)
      queueMicrotask(() => {
        const asking = this.#asking.map((one) => ({ ...one, heldAtAsk: one.meter.held }));
        this.#asking = [];
        const requests = asking.map(
          ({ meter: one, request: given }): LeaseRequest => given ?? { ...base(one), units: one.ask(), held: one.held },
        );
        this.#take(requests).then(
          (leases) => {
            const now = this.#now();
            for (const [i, one] of asking.entries()) {
              const lease = leases[i];
              if (lease) one.meter.granted(lease, requests[i]!.units, now);
              one.done();
            }
          },
          () => {
            const now = this.#now();
            this.#aloneUntil = now + ALONE_MS;
            for (const one of asking) {
              if (one.request) one.meter.held = Math.max(one.meter.held, one.heldAtAsk);
              one.meter.alone(this.#gateways(), now);
              one.done();
            }
          },
        );
      });
  }

  #refuse(meter: Meter, cost: number): never {
    this.refusals++;
    const retryAfterSeconds = meter.retryAfterSeconds(cost, this.#now());
    const { name, limit, windowSeconds } = meter.policy;
    const last = this.#lastRefusal.get(meter);
    if (last?.retryAfterSeconds === retryAfterSeconds && last.details?.['limit'] === limit) throw last;
    const daily = name === 'daily';
    const refusal = new PlatformError(
      daily ? 'DAILY_LIMIT_EXCEEDED' : 'RATE_LIMIT_EXCEEDED',
      `The limit of ${limit} units in ${windowSeconds} seconds (${name}) is used up.`,
      { details: { policy: name, limit, windowSeconds }, retryAfterSeconds },
    );
    this.#lastRefusal.set(meter, refusal);
    throw refusal;
  }
}

function base(meter: Meter): { key: string; limit: number; windowSeconds: number; known: number } {
  const { key, limit, windowSeconds } = meter.policy;
  return { key, limit, windowSeconds, known: Math.max(0, Math.floor(meter.ownerRemaining)) };
}

const policyHeader = (policies: readonly RatePolicy[]): string =>
  policies.map((policy) => `"${policy.name}";q=${policy.limit};w=${policy.windowSeconds}`).join(', ');

/** The policy with the fewest units left: for X-RateLimit-Remaining and RateLimit. */
export function tightest(budget: Budget, now: number): { name: string; remaining: number; resetSeconds: number } {
  let found = budget.meters[0];
  let least = found.remaining(now);
  for (const meter of budget.meters) {
    const remaining = meter.remaining(now);
    if (remaining < least) {
      least = remaining;
      found = meter;
    }
  }
  return {
    name: found.policy.name,
    remaining: least,
    resetSeconds: Math.max(0, Math.ceil((found.policy.limit - least) / found.perMs / 1_000)),
  };
}
