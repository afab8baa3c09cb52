/** Deciders and policies of agents' requests, and the effect of their changes on waiting requests. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { call } from '../../../contracts/call.ts';
import { Database } from '../../../mixins/database/database.ts';
import { signIn } from '../../../scripts/sign-in.ts';
import { expireDue } from '../../../services/agent/upkeep/upkeep.ts';
import { contextOf } from '../../support/agents.ts';
import { type Answer, type Api, api, type CallOptions } from '../../support/client.ts';
import { wholePackage } from '../../support/metadata-tenant.ts';
import { type Deals, startDeals } from '../data/deals.ts';

const GOAL = { agentKey: 'tester', goal: 'Tidy deals.' };

const policy = (rules: readonly object[], more: object = {}): Record<string, string> => ({
  'agentPolicies/Deals.yaml': JSON.stringify({
    type: 'AgentPolicy',
    apiName: 'Deals',
    appliesTo: { clients: ['*'] },
    rules,
    ...more,
  }),
});
const DELETES = { operationIds: ['data.records.delete'], decision: 'approve' };

describe('policies of agents over HTTP', function () {
  this.timeout(180_000);
  let deals: Deals;
  let database: Database;
  let ada: Api;
  let mia: Api;
  let sam: Api;
  before(async () => {
    deals = await startDeals();
    ({ ada, mia, sam } = deals.as);
    database = new Database(deals.platform.database.url, { size: 2, applicationName: 'policies test' });
  });
  after(async () => {
    await database?.close();
    await deals?.platform.stop();
  });

  const begin = async (more: object = {}): Promise<string> => {
    const reply = await sam.post('/agent/runs', { ...GOAL, ...more });
    assert.equal(reply.status, 201, reply.text);
    return reply.body.runId;
  };
  const under = (runId: string, more: CallOptions = {}): CallOptions => ({
    ...more,
    headers: { 'x-agent-run-id': runId },
  });
  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body?.code], [status, code], reply.text);
  /** A waiting deletion under a run of its own, and how it is sent again. */
  const ask = async (): Promise<{ asked: Answer; runId: string; again: (key?: string) => Promise<Answer> }> => {
    const deal = await deals.deal(sam, { name: `Deal ${randomUUID()}` });
    const runId = await begin();
    const key = randomUUID();
    const again = (idempotencyKey: string = key): Promise<Answer> =>
      sam.delete(
        `/data/Deal__c/${deal.body.id}`,
        under(runId, { etag: deal.headers.get('etag') ?? '', idempotencyKey }),
      );
    const asked = await again();
    refused(asked, 403, 'APPROVAL_REQUIRED');
    return { asked, runId, again };
  };
  const decide = (who: Api, { body }: Answer, decision = 'approve', more: object = {}): Promise<Answer> => {
    const { approvalId, fingerprint } = body.details;
    return who.post(`/agent/approvals/${approvalId}/decision`, { decision, fingerprint, ...more });
  };
  const read = (who: Api, { body }: Answer): Promise<Answer> => who.get(`/agent/approvals/${body.details.approvalId}`);

  it('name clients as their components do, and show the name', async () => {
    const named = policy([DELETES], { appliesTo: { clients: ['*', 'erp-cli', 'demo-DunningAgent', 'Nobody'] } });
    const { blocked } = (await ada.post('/metadata/validate', { files: named, package: wholePackage(named) })).body;
    assert.deepEqual(
      blocked.map(({ code, message }: { code: string; message: string }) => [code, message]),
      [
        ['DEPENDENCY_MISSING', 'ExternalClient Nobody is neither in the project nor in the tenant.'],
        [
          'YAML_SCHEMA_INVALID',
          'A client is named by the apiName of its ExternalClient, such as DunningAgent, not by its client_id; ' +
            'erp-cli and * stand for themselves.',
        ],
      ],
    );
  });

  it('require as many different approvers as they state', async () => {
    await deals.deploy(policy([{ ...DELETES, requiredApprovals: 2 }]));
    const { asked, again } = await ask();
    assert.equal((await decide(mia, asked)).body.status, 'PENDING');
    const twice = await decide(mia, asked);
    refused(twice, 409, 'APPROVAL_ALREADY_DECIDED');
    assert.deepEqual(twice.body.details, { status: 'PENDING' });
    refused(await again(), 403, 'APPROVAL_PENDING');
    const settled = (await decide(ada, asked)).body;
    assert.equal(settled.status, 'APPROVED');
    assert.deepEqual(
      settled.decisions.map(({ userId }: { userId: string }) => userId),
      [deals.ids.mia, deals.ids.ada],
    );
    assert.equal((await again()).status, 200);
  });

  it('let a single approver reject', async () => {
    await deals.deploy(policy([{ ...DELETES, requiredApprovals: 2 }]));
    const { asked, again } = await ask();
    await decide(mia, asked);
    assert.equal((await decide(ada, asked, 'reject', { comment: 'Keep it.' })).body.status, 'REJECTED');
    refused(await again(), 403, 'APPROVAL_REJECTED');
  });

  for (const [title, approver, kind, others] of [
    ['a user', 'ada', 'ada', 'mia'],
    ['the holders of a role and those above', { role: 'Ceo' }, { kind: 'role', id: 'Ceo' }, 'mia'],
    ['the members of a group', { group: 'Heads' }, { kind: 'group', id: 'Heads' }, 'mia'],
  ] as const)
    it(`can name ${title}, and others find nothing to decide`, async () => {
      const heads = 'type: Group\napiName: Heads\nlabel: Heads\nmembers:\n  users:\n    - ada@demo.example\n';
      const named = approver === 'ada' ? { user: deals.ids.ada.toUpperCase() } : approver;
      await deals.deploy({ 'groups/Heads.yaml': heads, ...policy([{ ...DELETES, approvers: [named] }]) });
      const { asked } = await ask();
      refused(await decide(deals.as[others], asked), 404, 'APPROVAL_NOT_FOUND');
      refused(await read(deals.as[others], asked), 404, 'APPROVAL_NOT_FOUND');
      const shown = (await read(ada, asked)).body;
      assert.deepEqual(
        [shown.policyApiName, shown.approvers],
        ['Deals', [kind === 'ada' ? { kind: 'user', id: deals.ids.ada } : kind]],
      );
      assert.equal((await decide(ada, asked)).status, 201);
    });

  it('can name the manager of the user on whose behalf the agent acts', async () => {
    await deals.deploy(policy([{ ...DELETES, approvers: [{ manager: true }] }]));
    const { asked } = await ask();
    refused(await decide(ada, asked), 404, 'APPROVAL_NOT_FOUND');
    assert.deepEqual((await read(mia, asked)).body.approvers, [{ kind: 'manager', id: deals.ids.mia }]);
    assert.equal((await decide(mia, asked)).status, 201);
  });

  it('add deciders when a request stays undecided for too long', async () => {
    const escalation = { escalateAfterSeconds: 600, escalateTo: [{ role: 'Ceo' }] };
    await deals.deploy(policy([{ ...DELETES, approvers: [{ manager: true }], ...escalation }]));
    const { asked } = await ask();
    refused(await decide(ada, asked), 404, 'APPROVAL_NOT_FOUND');
    const { approvalId } = asked.body.details;
    await database.query(`UPDATE agent.approvals SET escalate_at = clock_timestamp() WHERE approval_id = $1`, [
      approvalId,
    ]);
    const { escalatedAt } = (await read(ada, asked)).body;
    assert.ok(escalatedAt !== null);
    await expireDue(database, new AbortController().signal, (_, error) => assert.fail(String(error)));
    assert.equal((await read(mia, asked)).body.escalatedAt, escalatedAt);
    assert.equal((await decide(ada, asked)).status, 201);
  });

  it('exclude users from deciding on requests made on their own behalf, unless configured otherwise', async () => {
    await deals.deploy(policy([DELETES]));
    const deal = await deals.deal(sam, { name: 'Own' });
    const change = async (who: Api = mia): Promise<Answer> => {
      const runId = (await who.post('/agent/runs', GOAL)).body.runId;
      return who.patch(
        `/data/Deal__c/${deal.body.id}`,
        { Stage__c: `s ${randomUUID()}` },
        under(runId, { etag: deal.headers.get('etag') ?? '' }),
      );
    };
    const changes = { operationIds: ['data.records.update'], decision: 'approve' };
    await deals.deploy(policy([changes]));
    const strict = await change();
    refused(await decide(mia, strict), 403, 'APPROVAL_SELF_NOT_ALLOWED');
    await deals.deploy(policy([changes], { allowSelfApproval: true }));
    refused(await decide(mia, strict), 403, 'APPROVAL_SELF_NOT_ALLOWED');
    // The requesting program can hold the user's token: another client is required.
    refused(await decide(mia, await change()), 403, 'APPROVAL_ACTOR_NOT_HUMAN');
    const { baseUrl } = deals.platform;
    const { access_token } = await signIn({
      baseUrl,
      user: 'mia@demo.example',
      password: 'demo-password',
      clientId: 'demo-DunningAgent',
      scope: 'agent:run data:read data:write',
    });
    assert.equal((await decide(mia, await change(api(baseUrl, access_token)))).status, 201);
  });

  it('leave waiting requests unchanged, and apply when these are sent again', async () => {
    await deals.deploy(policy([{ ...DELETES, approvers: [{ manager: true }] }]));
    const denied = await ask();
    const freed = await ask();
    await deals.deploy(policy([{ ...DELETES, decision: 'deny' }]));
    assert.equal((await decide(mia, denied.asked)).status, 201);
    const answer = await denied.again();
    refused(answer, 403, 'AGENT_POLICY_DENIED');
    assert.equal(answer.body.details.policyApiName, 'Deals');
    await deals.deploy(policy([{ ...DELETES, decision: 'allow' }]));
    assert.equal((await freed.again()).status, 200);
    assert.equal((await read(mia, freed.asked)).body.status, 'PENDING');
  });

  it('evaluate a check like the call that it previews, and on its own', async () => {
    const check = async (...rules: readonly object[]): Promise<Answer> => {
      await deals.deploy(policy(rules));
      const body = { operation: 'create', fields: { name: 'Tried' } };
      return sam.post('/data/Deal__c/check', body, under(await begin()));
    };
    const denied = { operationIds: ['data.records.create'], decision: 'deny' };
    const asked = await check(denied);
    refused(asked, 403, 'AGENT_POLICY_DENIED');
    assert.equal(asked.body.details.operationId, 'data.records.check');
    refused(await check({ ...denied, objects: ['Deal__c'] }), 403, 'AGENT_POLICY_DENIED');
    refused(await check({ operationIds: ['data.records.check'], decision: 'deny' }), 403, 'AGENT_POLICY_DENIED');
    const waits = await check({ operationIds: ['data.records.create'], decision: 'approve' });
    assert.deepEqual([waits.status, waits.body.valid, waits.body.approvalRequired], [200, true, true], waits.text);
    const allowed = await check({ ...denied, objects: ['DealLine__c'] });
    assert.deepEqual([allowed.status, allowed.body.approvalRequired], [200, false], allowed.text);
  });

  it('keep denied content out of the answers of checks', async () => {
    const deal = await deals.deal(sam, { name: `Deal ${randomUUID()}` });
    const line = await sam.post('/data/DealLine__c', { name: 'Line', Deal__c: deal.body.id });
    assert.equal(line.status, 201, line.text);
    const objectsOf = ({ body, text }: Answer): string[] => {
      assert.ok(body.valid, text);
      return body.effects.map((effect: { objectApiName: string }) => effect.objectApiName);
    };
    const removal = { operation: 'delete', id: deal.body.id, ifMatch: deal.headers.get('etag') };
    const remove = async () => objectsOf(await sam.post('/data/Deal__c/check', removal, under(await begin())));
    const create = async (Deal__c: unknown): Promise<Answer> => {
      const body = { operation: 'create', fields: { name: 'Tried', Deal__c } };
      return sam.post('/data/DealLine__c/check', body, under(await begin()));
    };
    await deals.deploy(policy([]));
    assert.ok((await remove()).includes('DealLine__c'));
    assert.notEqual((await create({ name: deal.body.name })).body.code, 'AGENT_POLICY_DENIED');

    await deals.deploy(policy([{ objects: ['DealLine__c'], decision: 'deny' }]));
    assert.deepEqual([...new Set(await remove())], ['Deal__c']);
    await deals.deploy(policy([{ objects: ['Deal__c'], decision: 'deny' }]));
    refused(await create({ name: deal.body.name }), 403, 'AGENT_POLICY_DENIED');
    refused(await create(deal.body.id), 403, 'AGENT_POLICY_DENIED');
  });

  it('keep transitions from referring to denied records', async () => {
    await deals.deploy({
      'objects/DealLine__c/actions/move.yaml': JSON.stringify({
        type: 'CustomAction',
        apiName: 'move',
        object: 'DealLine__c',
        label: 'Move',
        permission: 'DealLine__c.move',
        risk: 'low',
        input: { type: 'object', properties: { to: { type: 'string' }, name: { type: 'string' } } },
        effects: [
          {
            verb: 'updateFields',
            fields: { Deal__c: 'coalesce(input.to, record.Deal__c)', name: 'coalesce(input.name, record.name)' },
          },
          {
            verb: 'createRecord',
            object: 'DealLine__c',
            fields: { Deal__c: 'record.Deal__c', name: 'coalesce(input.name, record.name)' },
          },
        ],
      }),
      'permissionSets/Moving.yaml': JSON.stringify({
        type: 'PermissionSet',
        apiName: 'Moving',
        label: 'Moving',
        actions: ['DealLine__c.move'],
      }),
    });
    await deals.setUser('sam', { permissionSetApiNames: ['Deals', 'Moving'] });
    const deal = await deals.deal(sam, { name: `Deal ${randomUUID()}` });
    const line = await sam.post('/data/DealLine__c', { name: 'Line', Deal__c: deal.body.id });
    const path = `/data/DealLine__c/${line.body.id}`;
    const etag = line.headers.get('etag') ?? '';
    const execute = async (input: object): Promise<Answer> =>
      sam.post(`${path}/transitions/move`, { input }, under(await begin(), { etag }));
    const check = async (input: object): Promise<Answer> => {
      const body = { operation: 'transition', transitionKey: 'move', id: line.body.id, ifMatch: etag, input };
      return sam.post('/data/DealLine__c/check', body, under(await begin()));
    };
    await deals.deploy(policy([]));
    assert.equal((await check({ to: deal.body.id })).status, 200);
    await deals.deploy(policy([{ objects: ['Deal__c'], decision: 'deny' }]));
    for (const to of [deal.body.id, randomUUID()])
      for (const refer of [execute, check]) refused(await refer({ to }), 403, 'AGENT_POLICY_DENIED');
    assert.equal((await check({ name: 'Other' })).status, 200);
    assert.equal((await execute({ name: 'Other' })).status, 201);
  });

  it('can limit budgets, and report each limit', async () => {
    await deals.deploy(policy([], { budgets: { maxCost: 50, maxMutations: 3 } }));
    const run = (await sam.post('/agent/runs', GOAL)).body;
    assert.deepEqual(run.budget, { maxCost: 50, maxMutations: 3, maxRecords: 200 });
    const greedy = await sam.post('/agent/runs', {
      ...GOAL,
      budget: { maxCost: 51, maxMutations: 4, maxRecords: 300 },
    });
    refused(greedy, 403, 'AGENT_POLICY_DENIED');
    assert.deepEqual(
      greedy.body.errors.map((error: { pointer: string; params: object }) => [error.pointer, error.params]),
      [
        ['/budget/maxCost', { max: 50 }],
        ['/budget/maxMutations', { max: 3 }],
      ],
    );
  });

  it('are refused with all their violations', async () => {
    const reply = await ada.post('/metadata/validate', {
      package: { version: 1, types: [{ name: 'AgentPolicy', members: ['Deals'] }] },
      files: policy([
        { operationIds: ['data.records.erase', 'nowhere.*'], decision: 'deny', approvers: [{ role: 'Ceo' }] },
        { decision: 'approve', approvers: [{}, { role: 'Nobody' }, { user: 'a', manager: true }] },
        { decision: 'approve', escalateAfterSeconds: 600 },
        { decision: 'approve', expiresInSeconds: 300, escalateAfterSeconds: 300, escalateTo: [{ manager: true }] },
        {
          decision: 'approve',
          approvers: [{ user: deals.ids.mia }, { user: deals.ids.mia.toUpperCase() }],
          requiredApprovals: 2,
        },
        { decision: 'approve', approvers: [{ user: deals.ids.mia }, { manager: true }], requiredApprovals: 2 },
        { decision: 'approve', approvers: [{ user: deals.ids.mia }, { role: 'Ceo' }], requiredApprovals: 9 },
        { decision: 'approve', approvers: [{ user: 'mia@demo.example' }] },
      ]),
    });
    assert.equal(reply.status, 200, reply.text);
    const problems = reply.body.blocked.map(
      ({ code, message }: { code: string; message: string }) => `${code} ${message}`,
    );
    const username = problems.findIndex((problem: string) => problem.includes('not the username mia@demo.example'));
    assert.match(problems.splice(username, 1)[0], /^YAML_SCHEMA_INVALID .*POST \/data\/User\/query/);
    assert.deepEqual(problems.sort(), [
      'DEPENDENCY_MISSING Role Nobody is neither in the project nor in the tenant.',
      'REFERENCE_INVALID There is no operation data.records.erase.',
      'REFERENCE_INVALID There is no operation nowhere.*.',
      'YAML_SCHEMA_INVALID Name one of role, group, user or manager: true.',
      'YAML_SCHEMA_INVALID The approval expires before that, after 300 s.',
      'YAML_SCHEMA_INVALID The rule names 1 person to decide, so nothing is ever approved 2 times.',
      'YAML_SCHEMA_INVALID approvers is for decision approve.',
      'YAML_SCHEMA_INVALID escalateAfterSeconds and escalateTo belong together.',
    ]);
  });

  describe('when a user decides', () => {
    before(() => deals.deploy(policy([DELETES])));

    it('require the permission at the time of the decision', async () => {
      const { asked } = await ask();
      const { baseUrl } = deals.platform;
      const before = (await ada.get(`/data/User/${deals.ids.mia}`)).body;
      const set = async (profileApiName: string): Promise<void> => {
        const path = `/data/User/${deals.ids.mia}`;
        const etag = (await ada.get(path)).headers.get('etag') ?? '';
        const changed = await ada.patch(path, { profileApiName }, { etag });
        assert.equal(changed.status, 200, changed.text);
      };
      await set('SalesRep');
      try {
        refused(await decide(mia, asked), 403, 'OBJECT_PERMISSION_DENIED');
      } finally {
        await set(before.profileApiName);
      }
      assert.equal((await decide(mia, asked)).status, 201, baseUrl);
    });

    it('refuse decisions under a run', async () => {
      const { asked } = await ask();
      const { approvalId, fingerprint } = asked.body.details;
      const { runId } = (await mia.post('/agent/runs', GOAL)).body;
      const decision = { decision: 'approve', fingerprint };
      for (const named of [runId, randomUUID()])
        refused(
          await mia.post(`/agent/approvals/${approvalId}/decision`, decision, under(named)),
          403,
          'APPROVAL_ACTOR_NOT_HUMAN',
        );
      assert.equal((await read(mia, asked)).body.status, 'PENDING');
    });

    it('accept decisions of users only', async () => {
      const { asked } = await ask();
      const { approvalId, fingerprint } = asked.body.details;
      const context = await contextOf(mia);
      for (const more of [{ person: false, agent: true }, { person: false }, { agentRunId: randomUUID() }]) {
        const attempt = call(
          deals.platform.broker,
          'agent.approvals.decide',
          {
            operationId: 'agent.approvals.decide',
            path: { approvalId },
            query: {},
            headers: { idempotencyKey: randomUUID() },
            body: { decision: 'approve', fingerprint },
            fingerprint: randomUUID(),
          },
          { meta: { request: { ...context, ...more } } },
        );
        await assert.rejects(attempt, { code: 'APPROVAL_ACTOR_NOT_HUMAN' });
      }
      assert.equal((await decide(mia, asked)).status, 201);
    });

    it('refuse other scopes and malformed decisions', async () => {
      const { asked } = await ask();
      const { approvalId, fingerprint } = asked.body.details;
      const path = `/agent/approvals/${approvalId}`;
      const narrow = async (scope: string): Promise<Api> => {
        const { baseUrl } = deals.platform;
        const signedIn = await signIn({ baseUrl, user: 'mia@demo.example', password: 'demo-password', scope });
        return api(baseUrl, signedIn.access_token);
      };
      const reader = await narrow('data:read');
      refused(await reader.get(path), 403, 'SCOPE_INSUFFICIENT');
      refused(await reader.post(`/agent/runs/${randomUUID()}/cancel`), 403, 'SCOPE_INSUFFICIENT');
      const runner = await narrow('agent:run');
      refused(await runner.get(path), 404, 'APPROVAL_NOT_FOUND');
      refused(await runner.get('/agent/approvals'), 403, 'SCOPE_INSUFFICIENT');
      const approver = await narrow('agent:approve');
      assert.equal((await approver.get(path)).status, 200);
      const wrong = await mia.post(`${path}/decision`, { decision: 'maybe', comment: 'x'.repeat(2_001), by: 'me' });
      assert.equal(wrong.status, 400, wrong.text);
      assert.deepEqual(wrong.body.errors.map(({ pointer }: { pointer: string }) => pointer).sort(), [
        '/by',
        '/comment',
        '/decision',
        '/fingerprint',
      ]);
      refused(await mia.post(`${path}/decision`, undefined), 400, 'BODY_REQUIRED');
      const key = randomUUID();
      const body = { decision: 'approve', fingerprint };
      const first = await mia.post(`${path}/decision`, body, { idempotencyKey: key });
      const replayed = await mia.post(`${path}/decision`, body, { idempotencyKey: key });
      assert.deepEqual([replayed.status, replayed.body], [201, first.body]);
      assert.equal(replayed.headers.get('idempotency-replayed'), 'true');
    });

    it('expire an unused approval after an hour', async () => {
      const { asked, again } = await ask();
      const { body } = await decide(mia, asked);
      assert.ok(Math.abs(Date.parse(body.expiresAt) - Date.parse(body.decisions[0].decidedAt) - 3_600_000) < 2_000);
      await database.query('UPDATE agent.approvals SET expires_at = clock_timestamp() WHERE approval_id = $1', [
        body.approvalId,
      ]);
      refused(await again(), 403, 'APPROVAL_EXPIRED');
      assert.equal((await read(mia, asked)).body.status, 'EXPIRED');
      refused(await decide(ada, asked), 403, 'APPROVAL_EXPIRED');
      const anew = await again(randomUUID());
      refused(anew, 403, 'APPROVAL_REQUIRED');
      assert.notEqual(anew.body.details.approvalId, body.approvalId);
    });
  });
});
