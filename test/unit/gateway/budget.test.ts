import assert from 'node:assert/strict';
import type { GrantState } from '../../../contracts/auth.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { Budgets, type Connection, tightest } from '../../../services/gateway/pipeline/budget.ts';
import { Buckets } from '../../../services/ratelimit/buckets.ts';

const DEFAULTS = { connection: 100, tenant: 1000, anonymous: 5, daily: 1e6, concurrency: 3, concurrencyCostly: 1 };
const WHO = { tenantId: 't', clientId: 'c', userId: 'u' };
const GRANT = {
  rateLimits: {
    client: { connection: null, concurrency: null },
    tenant: { connection: null, tenant: null, daily: null, concurrency: null },
  },
} as GrantState;

function world(gateways = 1) {
  const owner = new Buckets();
  const state = { now: 1_000_000, down: false, calls: 0 };
  const budgets = Array.from(
    { length: gateways },
    (_, i) =>
      new Budgets(
        DEFAULTS,
        async (requests) => {
          state.calls++;
          if (state.down) throw new Error('down');
          return requests.map((request) => owner.take(`g${i}`, request, state.now));
        },
        () => gateways,
        () => state.now,
      ),
  );
  return { owner, state, budgets };
}

const refused = (code: string) => (error: unknown) => error instanceof PlatformError && error.code === code;

describe('A budget', () => {
  it('lets exactly the limit pass across all gateways', async () => {
    const { budgets } = world(3);
    let passed = 0;
    for (let i = 0; i < 150; i++) {
      const one = budgets[i % 3]!;
      const spent = await Promise.resolve(one.charge(one.connection(WHO, GRANT), 1)).then(
        () => true,
        () => false,
      );
      if (spent) passed++;
    }
    assert.ok(passed <= 100 && passed >= 94, `${passed} passed`);
  });

  it('reports a wait of at most one window', async () => {
    const { budgets, state } = world();
    const tenant = { connection: null, tenant: null, daily: 1, concurrency: null };
    const connection = budgets[0]!.connection(WHO, { ...GRANT, rateLimits: { ...GRANT.rateLimits, tenant } });
    await assert.rejects(
      async () => budgets[0]!.charge(connection, 10),
      (error) => error instanceof PlatformError && error.retryAfterSeconds === 86_400,
    );
    state.now += 1_000;
    budgets[0]!.settle(connection, 1_000);
    await assert.rejects(
      async () => budgets[0]!.charge(connection, 1),
      (error) => error instanceof PlatformError && (error.retryAfterSeconds ?? Infinity) <= 86_400,
    );
  });

  it('keeps in-flight counts of signed-in callers during a flood by others', () => {
    const [budgets] = world().budgets;
    const { flight } = budgets!.connection(WHO, GRANT);
    for (let i = 0; i < 120_000; i++) budgets!.anonymous(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`);
    assert.equal(budgets!.connection(WHO, GRANT).flight, flight);
    assert.deepEqual([flight.shared, budgets!.anonymous('192.0.2.1').flight.shared], [false, true]);
  });

  it('spends leased units without a call', async () => {
    const { budgets, state } = world();
    const connection = budgets[0]!.connection(WHO, GRANT);
    await budgets[0]!.charge(connection, 1);
    const { calls } = state;
    assert.equal(budgets[0]!.charge(connection, 1), undefined);
    assert.ok(state.calls - calls <= 1);
  });

  it('charges the actual cost of a request to later ones, also beyond the remainder', async () => {
    const { budgets, state } = world();
    const connection = budgets[0]!.connection(WHO, GRANT);
    await budgets[0]!.charge(connection, 60);
    budgets[0]!.settle(connection, 70);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(tightest(connection, state.now).remaining, 0);
    await assert.rejects(async () => budgets[0]!.charge(connection, 1), refused('RATE_LIMIT_EXCEEDED'));
    // 100 units flow back in a minute; 30 of them are owed.
    state.now += 17_000;
    await assert.rejects(async () => budgets[0]!.charge(connection, 1), refused('RATE_LIMIT_EXCEEDED'));
    state.now += 3_000;
    await budgets[0]!.charge(connection, 1);
  });

  it('never owes more than one window', async () => {
    const { budgets, state } = world();
    const connection = budgets[0]!.connection(WHO, GRANT);
    for (let n = 0; n < 50; n++) budgets[0]!.settle(connection, 100);
    await new Promise((resolve) => setImmediate(resolve));
    await assert.rejects(async () => budgets[0]!.charge(connection, 1), refused('RATE_LIMIT_EXCEEDED'));
    state.now += 61_000;
    await budgets[0]!.charge(connection, 50);
  });

  it('reports the exact remainder when it is the only gateway', async () => {
    const { budgets, state } = world();
    const connection = budgets[0]!.connection(WHO, GRANT);
    for (let i = 1; i <= 20; i++) {
      await budgets[0]!.charge(connection, 2);
      assert.equal(tightest(connection, state.now).remaining, 100 - 2 * i);
    }
  });

  it('charges nothing for a refused request, on any policy', async () => {
    const { budgets, state } = world();
    const connection = budgets[0]!.connection(WHO, GRANT);
    await budgets[0]!.charge(connection, 98);
    const tenantBefore = connection.meters[1]!.remaining(state.now);
    await assert.rejects(async () => budgets[0]!.charge(connection, 5), refused('RATE_LIMIT_EXCEEDED'));
    assert.equal(connection.meters[1]!.remaining(state.now), tenantBefore);
    await budgets[0]!.charge(connection, 2);
  });

  it('gives a refused caller the policy and the wait', async () => {
    const { budgets } = world();
    const connection = budgets[0]!.connection(WHO, GRANT);
    await budgets[0]!.charge(connection, 100);
    await assert.rejects(
      async () => budgets[0]!.charge(connection, 5),
      (error: unknown) => {
        assert.ok(error instanceof PlatformError);
        assert.deepEqual(error.details, { policy: 'connection', limit: 100, windowSeconds: 60 });
        assert.equal(error.retryAfterSeconds, 3, 'five units flow back in three seconds');
        return true;
      },
    );
  });

  it('allows requests as soon as an exhausted limit is raised', async () => {
    const { budgets, state } = world();
    const [budget] = budgets as [Budgets];
    const narrowed = (limit: number | null): Connection => {
      const tenant = { connection: limit, tenant: limit, daily: limit, concurrency: null };
      return budget.connection(WHO, { ...GRANT, rateLimits: { ...GRANT.rateLimits, tenant } });
    };
    await budget.charge(narrowed(null), 20);
    state.now += 3_000;
    budget.sweep();
    await assert.rejects(async () => budget.charge(narrowed(1), 5), refused('RATE_LIMIT_EXCEEDED'));
    // In this time 5 units of 100 in a minute have flowed back.
    state.now += 3_000;
    await budget.charge(narrowed(null), 5);
  });

  it('falls back to a local share when the owner is lost, never to no limit, and comes back', async () => {
    const { budgets, state } = world(2);
    const one = budgets[0]!;
    const connection = one.connection(WHO, GRANT);
    state.down = true;
    let passed = 0;
    for (let i = 0; i < 200; i++) {
      const spent = await Promise.resolve()
        .then(() => one.charge(connection, 1))
        .then(
          () => true,
          () => false,
        );
      if (spent) passed++;
    }
    assert.equal(passed, 50, 'half of the limit: two gateways are known');
    state.down = false;
    state.now += 5_000;
    await one.charge(connection, 1);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(connection.meters[0]!.isAlone, false);
  });

  it('refuses no request because the same caller reads the remainder', async () => {
    const { budgets, state, owner } = world();
    const [one] = budgets as [Budgets];
    const connection = one.connection(WHO, GRANT);
    for (const first of ['ask', 'spend']) {
      const [before, after] = first === 'ask' ? [1, 3] : [3, 1];
      await Promise.all([
        ...Array.from({ length: before }, () => one.charge(connection, 1)),
        one.report(connection),
        ...Array.from({ length: after }, () => one.charge(connection, 1)),
      ]);
      // Idle, so that the next requests need a lease.
      state.now += 3_000;
      one.sweep();
      await new Promise((resolve) => setImmediate(resolve));
    }
    const { key, limit, windowSeconds } = connection.meters[0]!.policy;
    // 8 were spent, 5 of 100 in a minute have flowed back every three seconds, and no lease was lost on the way.
    assert.equal(owner.take('other', { key, limit, windowSeconds, units: 100 }, state.now).granted, 100);
  });

  it('returns unused units when idle', async () => {
    const { budgets, state, owner } = world();
    const connection = budgets[0]!.connection(WHO, GRANT);
    await budgets[0]!.charge(connection, 1);
    state.now += 3_000;
    budgets[0]!.sweep();
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(connection.meters[0]!.held, 0);
    const { key, limit, windowSeconds } = connection.meters[0]!.policy;
    assert.equal(owner.take('other', { key, limit, windowSeconds, units: 100 }, state.now).granted, 100);
  });

  it('limits requests in flight, costly ones more', () => {
    const { budgets } = world();
    const connection = budgets[0]!.connection(WHO, GRANT);
    const leave = budgets[0]!.enter(connection, 5);
    assert.throws(() => budgets[0]!.enter(connection, 5), refused('CONCURRENCY_LIMIT_EXCEEDED'));
    budgets[0]!.enter(connection, 1);
    const last = budgets[0]!.enter(connection, 1);
    assert.throws(() => budgets[0]!.enter(connection, 1), refused('CONCURRENCY_LIMIT_EXCEEDED'));
    last();
    leave();
    budgets[0]!.enter(connection, 5);
  });

  it('allows one free poll per second and id', () => {
    const { budgets, state } = world();
    assert.equal(budgets[0]!.freePoll('t:/d/1'), true);
    assert.equal(budgets[0]!.freePoll('t:/d/1'), false);
    assert.equal(budgets[0]!.freePoll('t:/d/2'), true);
    state.now += 1_000;
    assert.equal(budgets[0]!.freePoll('t:/d/1'), true);
  });
});
