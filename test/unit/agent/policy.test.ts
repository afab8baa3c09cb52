/** Agent policies decide by the first matching rule only. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { AgentPolicyMeta, AgentRuleMeta } from '../../../lib/schema/snapshot.ts';
import { budgetOf, evaluate, type PolicyCall, policiesOf } from '../../../services/agent/policy/evaluate.ts';
import { aSnapshot } from '../../support/snapshots.ts';

const rule = (more: Partial<AgentRuleMeta> = {}): AgentRuleMeta => ({
  operationIds: [],
  risk: null,
  objects: [],
  decision: 'allow',
  approvers: [],
  requiredApprovals: 1,
  expiresInSeconds: null,
  escalateAfterSeconds: null,
  escalateTo: [],
  ...more,
});

const NO_DAY = { maxCostPerDay: null, maxMutationsPerDay: null, maxRecordsPerDay: null };

const policy = (rules: readonly AgentRuleMeta[], more: Partial<AgentPolicyMeta> = {}): AgentPolicyMeta => ({
  apiName: 'Default',
  clients: ['*'],
  rules,
  budgets: { ...NO_DAY, maxCost: null, maxMutations: null, maxRecords: null },
  allowSelfApproval: false,
  ...more,
});

const call = (more: Partial<PolicyCall> = {}): PolicyCall => ({
  operationId: 'data.records.update',
  risk: 'medium',
  agentApproval: 'policy',
  objectApiName: 'Invoice__c',
  duplicateConfirmation: false,
  ...more,
});

const IDS = ['data.records.update', 'data.records.delete', 'data.records.list', 'metadata.deployments.create'] as const;
const OBJECTS = ['Invoice__c', 'Account', 'Order__c'] as const;
const RISKS = ['low', 'medium', 'high'] as const;

const aRule = fc.record({
  operationIds: fc.subarray([...IDS, 'data.*', 'data.records.*', 'metadata.*']),
  risk: fc.option(fc.constantFrom(...RISKS)),
  objects: fc.subarray([...OBJECTS]),
  decision: fc.constantFrom('allow', 'approve', 'deny'),
});
const rules = fc.array(aRule, { maxLength: 6 }).map((list) => list.map((one) => rule(one)));
const calls = fc.record({
  operationId: fc.constantFrom(...IDS),
  risk: fc.constantFrom(...RISKS),
  agentApproval: fc.constantFrom('never', 'policy', 'always'),
  objectApiName: fc.option(fc.constantFrom(...OBJECTS)),
  duplicateConfirmation: fc.boolean(),
});

/** Rule matching, implemented a second time. */
const fits = (one: AgentRuleMeta, asked: PolicyCall): boolean => {
  const named = one.operationIds.map((id) => new RegExp(`^${id.replaceAll('.', '\\.').replace('*', '.+')}$`));
  if (named.length > 0 && !named.some((pattern) => pattern.test(asked.operationId))) return false;
  if (one.risk && one.risk !== asked.risk) return false;
  return one.objects.length === 0 || one.objects.some((name) => name === asked.objectApiName);
};

describe('agent policies', () => {
  it('decide by the first matching rule, else by the risk', () => {
    fc.assert(
      fc.property(rules, calls, (list, asked) => {
        const plain = { ...asked, agentApproval: 'policy', duplicateConfirmation: false } as const;
        const expected =
          list.find((one) => fits(one, plain))?.decision ?? (plain.risk === 'high' ? 'approve' : 'allow');
        assert.equal(evaluate([policy(list)], plain).decision, expected);
      }),
    );
  });

  it('decide alike whether rules are in one policy or in several, in order', () => {
    fc.assert(
      fc.property(rules, rules, calls, (some, others, asked) => {
        const decisions = [[policy([...some, ...others])], [policy(some), policy(others)]].map(
          (policies) => evaluate(policies, asked).decision,
        );
        assert.equal(decisions[0], decisions[1]);
      }),
    );
  });

  it('ignore rules that do not match', () => {
    fc.assert(
      fc.property(rules, fc.nat(6), aRule, calls, (list, at, more, asked) => {
        const added = rule(more);
        fc.pre(!fits(added, asked));
        assert.deepEqual(evaluate([policy(list.toSpliced(at, 0, added))], asked), evaluate([policy(list)], asked));
      }),
    );
  });

  it('never allow denied calls, and always require approval for mandatory ones', () => {
    fc.assert(
      fc.property(rules, calls, (list, asked) => {
        const decided = list.find((one) => fits(one, asked))?.decision;
        const { decision } = evaluate([policy(list)], asked);
        if (decided === 'deny') assert.equal(decision, 'deny');
        else if (asked.duplicateConfirmation || asked.agentApproval === 'always') assert.equal(decision, 'approve');
        else if (asked.agentApproval === 'never') assert.equal(decision, 'allow');
      }),
    );
  });

  it('give an approval the terms of the rule, with the defaults of the platform', () => {
    const terms = { approvers: [{ role: 'SalesManager' }], requiredApprovals: 2, expiresInSeconds: 600 };
    const escalation = { escalateAfterSeconds: 300, escalateTo: [{ user: 'ada@demo.example' }] };
    const strict = policy([rule({ decision: 'approve', ...terms, ...escalation })], { allowSelfApproval: true });
    assert.deepEqual(evaluate([strict], call()), {
      decision: 'approve',
      terms: { policy: 'Default', ...terms, ...escalation, allowSelfApproval: true },
    });
    assert.deepEqual(evaluate([], call({ risk: 'high' })), {
      decision: 'approve',
      terms: {
        policy: null,
        approvers: [],
        requiredApprovals: 1,
        expiresInSeconds: 86_400,
        allowSelfApproval: false,
        escalateAfterSeconds: null,
        escalateTo: [],
      },
    });
  });

  it('of the client precede those for all clients; those of other clients never apply', () => {
    const snapshot = {
      ...aSnapshot([]),
      agentPolicies: Object.fromEntries(
        [
          policy([], { apiName: 'All' }),
          policy([], { apiName: 'Zeta', clients: ['Bot', '*'] }),
          policy([], { apiName: 'Other', clients: ['Else'] }),
          policy([], { apiName: 'Beta', clients: ['erp-cli'] }),
        ].map((one) => [one.apiName, one]),
      ),
      externalClients: { Bot: { ...BOT, apiName: 'Bot', clientId: 'demo-Bot' } },
    };
    const names = (clientId: string) => policiesOf(snapshot, clientId).map(({ apiName }) => apiName);
    assert.deepEqual(names('demo-Bot'), ['Zeta', 'All']);
    assert.deepEqual(names('erp-cli'), ['Beta', 'All', 'Zeta']);
    assert.deepEqual(names('https://elsewhere.example'), ['All', 'Zeta']);
  });

  it('limit budgets to the lowest that applies, with an entry for each reduced part', () => {
    const part = fc.option(fc.integer({ min: 0, max: 1_000 }));
    const budgets = fc.record({ maxCost: part, maxMutations: part, maxRecords: part });
    const asked = fc.record(
      {
        maxCost: fc.integer({ min: 0, max: 1_000 }),
        maxMutations: fc.integer({ min: 0, max: 1_000 }),
        maxRecords: fc.integer({ min: 0, max: 1_000 }),
      },
      { requiredKeys: [] },
    );
    const defaults = { maxCost: 500, maxMutations: 20, maxRecords: 200 };
    fc.assert(
      fc.property(fc.array(budgets, { maxLength: 4 }), asked, (list, wanted) => {
        const { budget, excess } = budgetOf(
          list.map((one, i) => policy([], { apiName: `P${i}`, budgets: { ...NO_DAY, ...one } })),
          wanted,
        );
        for (const name of ['maxCost', 'maxMutations', 'maxRecords'] as const) {
          const least = Math.min(...list.map((one) => one[name] ?? Number.POSITIVE_INFINITY));
          assert.equal(budget[name], Math.min(wanted[name] ?? defaults[name], least));
          assert.equal(
            excess.some((one) => one.name === name),
            (wanted[name] ?? 0) > least,
          );
        }
      }),
    );
  });
});

const BOT = {
  name: 'Bot',
  redirectUris: [],
  scopes: [],
  grantTypes: [],
  confidential: false,
  agent: true,
  active: true,
  ipRanges: [],
  origins: [],
  accessTokenSeconds: null,
  rateLimits: { connection: null, tenant: null, daily: null, concurrency: null },
  integrationUser: null,
};
