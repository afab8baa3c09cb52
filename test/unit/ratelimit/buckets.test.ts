import assert from 'node:assert/strict';
import fc from 'fast-check';
import { anonymousPolicy, connectionPolicies, ownerOf } from '../../../contracts/ratelimit.ts';
import { Buckets } from '../../../services/ratelimit/buckets.ts';

const request = (units: number, more: object = {}) => ({ key: 'k', limit: 60, windowSeconds: 60, units, ...more });
const DEFAULTS = { connection: 3000, tenant: 30000, anonymous: 300, daily: 1e7, concurrency: 50, concurrencyCostly: 8 };

describe('A rate counter', () => {
  it('grants up to the limit, then refills at limit per window', () => {
    const buckets = new Buckets();
    assert.deepEqual(buckets.take('g', request(60), 0), {
      key: 'k',
      granted: 60,
      remaining: 0,
      resetSeconds: 60,
      retryAfterSeconds: 0,
    });
    const refused = buckets.take('g', request(1), 100);
    assert.equal(refused.granted, 0);
    assert.equal(refused.retryAfterSeconds, 1);
    assert.equal(buckets.take('g', request(10), 3_100).granted, 3);
  });

  it('counts what a gateway holds against the limit until it is spent', () => {
    const buckets = new Buckets();
    buckets.take('g', request(10), 0);
    const later = buckets.take('h', request(100), 30_000);
    assert.equal(later.granted, 50, 'ten units are still in the hands of g');
  });

  it('takes back units that a gateway returns', () => {
    const buckets = new Buckets();
    buckets.take('g', request(60), 0);
    const lease = buckets.take('g', request(0, { returned: 20, held: 40 }), 1);
    assert.equal(lease.remaining, 20);
    assert.equal(buckets.take('g', request(0, { returned: 1_000 }), 2).remaining <= 60, true);
  });

  it('gives the units of a lost gateway back when the window turns', () => {
    const buckets = new Buckets();
    buckets.take('lost', request(60), 0);
    assert.equal(buckets.take('g', request(60), 59_000).granted, 0);
    assert.equal(buckets.take('g', request(1), 60_100).granted, 1);
  });

  it('forgets buckets that are full again', () => {
    const buckets = new Buckets();
    buckets.take('g', request(5), 0);
    buckets.take('g', request(0, { held: 0 }), 1);
    buckets.sweep(60_000);
    assert.equal(buckets.size, 0);
  });

  it('starts at what its gateways last saw when it moves to another owner', () => {
    assert.equal(new Buckets().take('g', request(60, { known: 7 }), 0).granted, 7);
  });

  it('never lets all gateways together spend more than the bucket has', () => {
    const seed = Date.now();
    const step = fc.record({
      gateway: fc.constantFrom('a', 'b', 'c'),
      ms: fc.integer({ min: 0, max: 4_000 }),
      want: fc.integer({ min: 0, max: 30 }),
      spend: fc.integer({ min: 0, max: 30 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const buckets = new Buckets();
        const held = new Map<string, number>();
        let now = 0;
        let spent = 0;
        for (const { gateway, ms, want, spend } of steps) {
          now += ms;
          if (now >= 55_000) break; // within one window no lease is forfeited
          const mine = held.get(gateway) ?? 0;
          const used = Math.min(mine, spend);
          spent += used;
          const lease = buckets.take(gateway, request(want, { held: mine - used }), now);
          held.set(gateway, mine - used + lease.granted);
          assert.ok(spent + [...held.values()].reduce((a, b) => a + b, 0) <= 60 + now / 1_000 + 1e-6, `at ${now} ms`);
        }
      }),
      { seed, numRuns: 300 },
    );
  });
});

describe('Rate policies', () => {
  const who = { tenantId: 't', clientId: 'c', userId: 'u' };

  it('are the lowest of tenant and client, within the maximum of operator or deployment', () => {
    const overrides = {
      client: { connection: 10_000, concurrency: null },
      tenant: { connection: 20, tenant: 99_999, daily: null, concurrency: null },
    };
    const limits = (more: object): number[] =>
      connectionPolicies(DEFAULTS, who, { ...overrides, ...more }).map(({ limit }) => limit);
    assert.deepEqual(limits({}), [20, 30_000, 1e7]);
    assert.deepEqual(limits({ client: { connection: 10, concurrency: null } }), [10, 30_000, 1e7]);
    const operator = { connection: 15, tenant: 50_000, daily: 2e7, concurrency: null };
    assert.deepEqual(limits({ operator }), [15, 50_000, 2e7]);
  });

  it('count an IPv6 network as one caller', () => {
    assert.equal(
      anonymousPolicy(DEFAULTS, '2001:db8:1:2:3::1').key,
      anonymousPolicy(DEFAULTS, '2001:db8:1:9:3::7').key,
    );
  });

  it('have one owner among the nodes, and a lost node moves only its own counters', () => {
    const nodes = ['a', 'b', 'c'];
    for (let i = 0; i < 100; i++) {
      const owner = ownerOf(`k${i}`, nodes)!;
      assert.equal(owner, ownerOf(`k${i}`, [...nodes].reverse()));
      if (owner !== 'b') assert.equal(ownerOf(`k${i}`, ['a', 'c']), owner);
    }
  });
});

describe('Counters of networks', () => {
  it('are bounded, and do not evict those of tenants', () => {
    const buckets = new Buckets();
    const request = (key: string) => ({ key, limit: 10, windowSeconds: 60, units: 5 });
    buckets.take('g', request('tenant:t'), 0);
    for (let i = 0; i < 150_000; i++) buckets.take('g', request(`anonymous:${i}`), 0);
    assert.equal(buckets.size, 100_001);
    assert.equal(buckets.state(request('tenant:t'), 0).remaining, 10);
    assert.equal(buckets.take('g', request('tenant:t'), 0).granted, 5);
    buckets.sweep(120_000);
    assert.equal(buckets.size, 0);
  });
});
