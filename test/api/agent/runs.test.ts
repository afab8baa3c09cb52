/** Runs of agents over HTTP: their life, who sees them, and what is refused. */
import assert from 'node:assert/strict';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const GOAL = { agentKey: 'dunning', goal: 'Remind customers of overdue invoices.' };

describe('agent runs over HTTP', () => {
  let platform: TestPlatform;
  let sam: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
  });
  after(() => platform?.stop());

  it('begin with the defaults and are read as they were answered', async () => {
    const created = await sam.post('/agent/runs', GOAL);
    assert.equal(created.status, 201, created.text);
    const { runId, createdAt, startedAt, expiresAt, userId, ...rest } = created.body;
    assert.deepEqual(rest, {
      ...GOAL,
      agentVersion: null,
      status: 'RUNNING',
      dryRun: false,
      completedAt: null,
      clientId: 'erp-cli',
      context: null,
      plan: null,
      budget: { maxCost: 500, maxMutations: 20, maxRecords: 200 },
      usage: { cost: 0, requests: 0, mutations: 0, recordsChanged: 0 },
      pendingApprovals: [],
      outcome: null,
      summary: null,
      output: null,
      modelUsage: null,
    });
    assert.equal(Date.parse(expiresAt) - Date.parse(createdAt), 3_600_000);
    assert.equal(startedAt, createdAt);
    assert.equal(created.headers.get('location'), `/api/v1/agent/runs/${runId}`);
    const read = await sam.get(`/agent/runs/${runId}`);
    assert.deepEqual([read.status, read.body], [200, created.body]);
    const identity = await sam.get('/identity');
    assert.equal(userId, identity.body.user.id);
  });

  it('end with what the agent reports, and stay ended', async () => {
    const { runId } = (await sam.post('/agent/runs', GOAL)).body;
    const report = {
      outcome: 'succeeded',
      summary: 'Two reminders sent.',
      output: { reminded: 2 },
      modelUsage: { provider: 'example', model: 'one', inputTokens: 12, outputTokens: 3 },
    };
    const completed = await sam.post(`/agent/runs/${runId}/complete`, report);
    assert.equal(completed.status, 201, completed.text);
    const { status, outcome, summary, output, modelUsage, completedAt } = completed.body;
    assert.deepEqual({ outcome, summary, output, modelUsage }, report);
    assert.equal(status, 'COMPLETED');
    assert.ok(completedAt !== null);
    assert.deepEqual((await sam.get(`/agent/runs/${runId}`)).body, completed.body);
    for (const again of ['complete', 'cancel']) {
      const refused = await sam.post(`/agent/runs/${runId}/${again}`, again === 'complete' ? report : undefined);
      assert.deepEqual([refused.status, refused.body.code], [409, 'RUN_NOT_ACTIVE'], refused.text);
      assert.deepEqual(refused.body.details, { status: 'COMPLETED' });
    }
  });
});
