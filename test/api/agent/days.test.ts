/** Limits beyond a run, per client and user: docs/reference/agents.md#days. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { LIMITS } from '../../../lib/limits.ts';
import type { Answer, Api, CallOptions } from '../../support/client.ts';
import { type Deals, startDeals } from '../data/deals.ts';

const policy = (budgets: object, rules: readonly object[] = []): Record<string, string> => ({
  'agentPolicies/Days.yaml': JSON.stringify({
    type: 'AgentPolicy',
    apiName: 'Days',
    appliesTo: { clients: ['*'] },
    rules,
    ...(Object.keys(budgets).length > 0 ? { budgets } : {}),
  }),
});

describe('a day of an agent', function () {
  this.timeout(180_000);
  let deals: Deals;
  let database: Client;
  let sam: Api;
  let mia: Api;
  before(async () => {
    deals = await startDeals();
    ({ sam, mia } = deals.as);
    database = new Client({ connectionString: deals.platform.database.url, application_name: 'days test' });
    await database.connect();
  });
  after(async () => {
    await database?.end();
    await deals?.platform.stop();
  });
  beforeEach(() => database.query('DELETE FROM agent.days'));

  let keys = 0;
  /** Every run under another name: the client chooses it freely. */
  const begin = async (who: Api = sam): Promise<string> => {
    const reply = await who.post('/agent/runs', { agentKey: `agent${keys++}`, goal: 'Tidy deals.' });
    assert.equal(reply.status, 201, reply.text);
    return reply.body.runId;
  };
  const under = (runId: string, more: CallOptions = {}): CallOptions => ({
    ...more,
    headers: { ...more.headers, 'x-agent-run-id': runId },
  });
  const create = (runId: string, who: Api = sam, key: string = randomUUID()): Promise<Answer> =>
    who.post('/data/Deal__c', { name: 'Deal' }, under(runId, { idempotencyKey: key }));
  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body?.code], [status, code], reply.text);

  for (const [budget, max, call] of [
    ['maxMutationsPerDay', 3, create],
    ['maxRecordsPerDay', 3, create],
    ['maxCostPerDay', 3, (runId: string) => sam.get('/data/Deal__c?take=1', under(runId))],
  ] as const)
    it(`has one ${budget} for all runs, whatever their agents are called`, async () => {
      await deals.deploy(policy({ [budget]: max }));
      for (let i = 0; i < max; i++) assert.ok((await call(await begin())).status < 300);
      const over = await call(await begin());
      refused(over, 403, 'AGENT_BUDGET_EXCEEDED');
      const { resetsAt, ...details } = over.body.details;
      assert.deepEqual([details.budget, details.used, details.max], [budget, max, max]);
      const hours = (Date.parse(resetsAt) - Date.now()) / 3_600_000;
      assert.ok(hours > 23.9 && hours <= 24, resetsAt);
      await database.query(`UPDATE agent.days SET began_at = began_at - interval '24 hours'`);
      assert.ok((await call(await begin())).status < 300);
    });

  it('counts exactly for simultaneous calls of many runs', async () => {
    await deals.deploy(policy({ maxMutationsPerDay: 5 }));
    const runs = await Promise.all(Array.from({ length: 12 }, () => begin()));
    const replies = await Promise.all(runs.map((runId) => create(runId)));
    assert.equal(replies.filter(({ status }) => status === 201).length, 5);
    for (const reply of replies) if (reply.status !== 201) refused(reply, 403, 'AGENT_BUDGET_EXCEEDED');
  });

  it('counts the records of a change that exceeds the budget, and names the budget', async () => {
    await deals.deploy(policy({ maxRecordsPerDay: 2 }));
    const parent = await deals.deal(sam, { name: 'Parent' });
    for (let i = 0; i < 3; i++)
      assert.equal((await sam.post('/data/DealLine__c', { name: 'L', Deal__c: parent.body.id })).status, 201);
    await deals.deploy(policy({ maxRecordsPerDay: 2 }, [{ operationIds: ['data.records.delete'], decision: 'allow' }]));
    const path = `/data/Deal__c/${parent.body.id}`;
    const etag = (await sam.get(path)).headers.get('etag') ?? '';
    const over = await sam.delete(path, under(await begin(), { etag }));
    refused(over, 403, 'AGENT_BUDGET_EXCEEDED');
    assert.equal(over.body.details.budget, 'maxRecordsPerDay');
    assert.equal((await sam.get(path)).status, 200);
  });

  it('charges simultaneous calls with one key once', async () => {
    await deals.deploy(policy({}));
    const runId = await begin();
    const key = randomUUID();
    await Promise.all(Array.from({ length: 6 }, () => create(runId, sam, key)));
    const { usage } = (await sam.get(`/agent/runs/${runId}`)).body;
    assert.deepEqual([usage.cost, usage.mutations, usage.recordsChanged], [2, 1, 1]);
  });

  it('charges previews for approvals once, too', async () => {
    await deals.deploy(policy({}, [{ operationIds: ['data.records.create'], decision: 'approve' }]));
    const runId = await begin();
    const key = randomUUID();
    const replies = await Promise.all(Array.from({ length: 4 }, () => create(runId, sam, key)));
    for (const { body } of replies) assert.ok(['APPROVAL_REQUIRED', 'APPROVAL_PENDING'].includes(body.code), body.code);
    assert.equal(new Set(replies.map(({ body }) => body.details.approvalId)).size, 1);
    assert.equal((await sam.get(`/agent/runs/${runId}`)).body.usage.cost, 2);
  });

  it('keeps rejections in every run of the client and user', async () => {
    await deals.deploy(policy({}, [{ operationIds: ['data.records.create'], decision: 'approve' }]));
    const asked = await create(await begin());
    refused(asked, 403, 'APPROVAL_REQUIRED');
    const { approvalId, fingerprint } = asked.body.details;
    const decision = { decision: 'reject', fingerprint, comment: 'No.' };
    assert.equal((await mia.post(`/agent/approvals/${approvalId}/decision`, decision)).status, 201);
    const again = await create(await begin());
    refused(again, 403, 'APPROVAL_REJECTED');
    assert.deepEqual([again.body.details.approvalId, again.body.details.comment], [approvalId, 'No.']);
    refused(await create(await begin(mia), mia), 403, 'APPROVAL_REQUIRED');
    await database.query(`UPDATE agent.decisions SET decided_at = decided_at - interval '24 hours'`);
    refused(await create(await begin()), 403, 'APPROVAL_REQUIRED');
  });

  it("leaves room for other users' approvals", async () => {
    const { rows } = await database.query(`SELECT * FROM agent.approvals WHERE status = 'PENDING' LIMIT 1`);
    const names = Object.keys(rows[0]).filter((name) => name !== 'approval_id' && name !== 'fingerprint');
    await database.query(
      `INSERT INTO agent.approvals (approval_id, fingerprint, ${names})
       SELECT gen_random_uuid(), gen_random_uuid()::text, ${names.map((name) => `a.${name}`)}
       FROM agent.approvals a, generate_series(1, $2) WHERE a.approval_id = $1`,
      [rows[0].approval_id, LIMITS.agent_approvals_of_user_max],
    );
    const [own, other] = rows[0].user_id === deals.ids.sam ? [sam, mia] : [mia, sam];
    refused(await create(await begin(own), own), 429, 'CONCURRENCY_LIMIT_EXCEEDED');
    refused(await create(await begin(other), other), 403, 'APPROVAL_REQUIRED');
  });
});
