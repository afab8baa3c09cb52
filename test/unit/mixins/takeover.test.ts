/** Which calls of a lost process are repeated, and how many. */
import assert from 'node:assert/strict';
import { isRepeatable } from '../../../contracts/bus.ts';
import { OPERATIONS } from '../../../contracts/operations.ts';
import { RepeatBudget } from '../../../mixins/bus/takeover.ts';

describe('calls of a lost process', () => {
  it('are repeated when they read, or carry an idempotency key', () => {
    for (const { action, mutation } of OPERATIONS) {
      assert.equal(isRepeatable(action, { headers: {} }), !mutation, action);
      assert.equal(isRepeatable(action, { headers: { idempotencyKey: 'key-00001' } }), true, action);
    }
  });

  it('are not repeated when they change something without a key', () => {
    for (const action of [
      'auth.http.handle',
      'auth.users.sync',
      'data.audit.deny',
      'agent.runs.admit',
      'unknown.action',
    ])
      assert.equal(isRepeatable(action, { headers: { idempotencyKey: 'key-00001' } }), false, action);
    assert.equal(isRepeatable('data.users.get', { tenantId: 't', userId: 'u' }), true);
  });

  it('are repeated up to a tenth of the calls of the last seconds', () => {
    let now = 0;
    const budget = new RepeatBudget(() => now);
    const takeAll = (): number => {
      let taken = 0;
      while (taken < 100_000 && budget.take()) taken++;
      return taken;
    };
    for (let i = 0; i < 5_000; i++) budget.noteCall();
    assert.equal(takeAll(), 500);
    assert.equal(budget.take(), false);
    now += 6_000;
    // Half of the calls still count, and half of the repeats.
    assert.equal(takeAll(), 0);
    for (let i = 0; i < 1_000; i++) budget.noteCall();
    assert.equal(takeAll(), 100);
    now += 30_000;
    assert.equal(takeAll(), 100, 'what a quiet process may repeat');
    for (let i = 0; i < 25_000; i++, now++) budget.noteCall();
    const taken = takeAll();
    assert.ok(taken >= 500 && taken <= 1_000, `${taken} of 10,000 calls, which nothing had happened to before`);
  });
});
