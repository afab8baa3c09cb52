/** Effect of an approval on its request, and the limits of a budget. */
import assert from 'node:assert/strict';
import { LIMITS } from '../../../lib/limits.ts';
import { budgetRefusal, type KnownApproval, standingOf } from '../../../services/agent/admission/decide.ts';
import type { LockedRun } from '../../../services/agent/runs/run.sql.ts';

const known = (more: Partial<KnownApproval>): KnownApproval => ({
  approvalId: 'an-approval',
  status: 'PENDING',
  live: true,
  expiresAt: '',
  sameKey: true,
  usedByKey: false,
  basis: null,
  comment: null,
  ...more,
});

describe('a request that needs an approval', () => {
  const execute = { next: 'execute', approvalId: 'an-approval', basis: null };
  const ask = { next: 'ask' };
  const refuse = (code: string) => ({ next: 'refuse', code });
  const cases: readonly [string, Partial<KnownApproval> | null, object][] = [
    ['asks when nobody was asked', null, ask],
    ['waits while it is pending', {}, refuse('APPROVAL_PENDING')],
    ['waits whatever its key', { sameKey: false }, refuse('APPROVAL_PENDING')],
    ['is executed when it is approved', { status: 'APPROVED' }, execute],
    ['is executed under another key when it is approved', { status: 'APPROVED', sameKey: false }, execute],
    ['is refused when it was not decided in time', { live: false }, refuse('APPROVAL_EXPIRED')],
    [
      'is refused when the approval was not used in time',
      { status: 'APPROVED', live: false },
      refuse('APPROVAL_EXPIRED'),
    ],
    ['is refused when the end was written down', { status: 'EXPIRED', live: false }, refuse('APPROVAL_EXPIRED')],
    ['asks again under another key after the end', { status: 'EXPIRED', live: false, sameKey: false }, ask],
    ['stays rejected', { status: 'REJECTED' }, refuse('APPROVAL_REJECTED')],
    [
      'stays rejected whatever its key',
      { status: 'REJECTED', live: false, sameKey: false },
      refuse('APPROVAL_REJECTED'),
    ],
    ['is let through to its stored answer when it was executed', { status: 'CONSUMED', usedByKey: true }, execute],
    ['asks again when another key has used the approval', { status: 'CONSUMED', sameKey: false }, ask],
    ['asks again when its approval was withdrawn', { status: 'CANCELED' }, ask],
  ];
  for (const [title, approval, expected] of cases)
    it(title, () => assert.deepEqual(standingOf(approval && known(approval)), expected));
});

describe('the budget of a run', () => {
  const run: LockedRun = {
    status: 'RUNNING',
    live: true,
    agentKey: 'dunning',
    userId: 'sam',
    clientId: 'erp-cli',
    dryRun: false,
    maxCost: 10,
    maxMutations: 2,
    maxRecords: 5,
    cost: 8,
    requests: 3,
    mutations: 1,
    recordsChanged: 4,
  };
  const refused = (more: Partial<LockedRun>, charge = { cost: 2, mutations: 1 }): unknown =>
    budgetRefusal({ ...run, ...more }, charge)?.details?.['budget'] ?? null;

  it('can be used to the last unit, not beyond', () => {
    assert.equal(refused({}), null);
    assert.equal(refused({ cost: 9 }), 'maxCost');
    assert.equal(refused({ mutations: 2 }), 'maxMutations');
    assert.equal(refused({ recordsChanged: 5 }), 'maxRecords');
    assert.equal(refused({ requests: LIMITS.agent_requests_of_run_max }), 'maxRequests');
    assert.equal(refused({ requests: LIMITS.agent_requests_of_run_max - 1 }), null);
  });

  it('lets reads through when only mutations are used up', () => {
    assert.equal(refused({ mutations: 2, recordsChanged: 5 }, { cost: 1, mutations: 0 }), null);
  });
});
