/** Runs of agents over HTTP: their life, who sees them, and what is refused. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { tenantSchema } from '../../../lib/context.ts';
import { Database } from '../../../mixins/database/database.ts';
import { signIn } from '../../../scripts/sign-in.ts';
import { cancelUnauthorized, expireDue } from '../../../services/agent/upkeep/upkeep.ts';
import { aDeletion, admit, aList, contextOf } from '../../support/agents.ts';
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

describe('the end of agent runs', function () {
  this.timeout(120_000);
  let platform: TestPlatform;
  let database: Database;
  let sam: Api;
  before(async () => {
    platform = await startPlatform();
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    database = new Database(platform.database.url, { size: 2, applicationName: 'runs test' });
  });
  after(async () => {
    await database?.close();
    await platform?.stop();
  });

  const events = async (tenantId: string, runId: string): Promise<string[]> => {
    const { rows } = await database.query<{ type: string }>(
      `SELECT type FROM "${tenantSchema(tenantId)}"._outbox WHERE data ->> 'runId' = $1 ORDER BY 1`,
      [runId],
    );
    return rows.map(({ type }) => type);
  };
  /** Lets the time of a run pass. */
  const outlive = (runId: string): Promise<unknown> =>
    database.query(`UPDATE agent.runs SET expires_at = clock_timestamp() WHERE run_id = $1`, [runId]);

  it('comes with their time for every reader at once, and is written down by a job', async () => {
    const { runId } = (await sam.post('/agent/runs', GOAL)).body;
    const context = await contextOf(sam);
    const asked = await admit(platform, context, aDeletion(runId)).catch((error) => error);
    const { approvalId } = asked.details;
    await outlive(runId);
    const read = (await sam.get(`/agent/runs/${runId}`)).body;
    assert.deepEqual([read.status, read.completedAt, read.pendingApprovals], ['EXPIRED', read.expiresAt, []]);
    assert.equal((await sam.get(`/agent/approvals/${approvalId}`)).body.status, 'CANCELED');
    const late = await sam.post(`/agent/runs/${runId}/complete`, { outcome: 'succeeded', summary: '' });
    assert.deepEqual([late.body.code, late.body.details], ['RUN_NOT_ACTIVE', { status: 'EXPIRED' }]);
    const listed = (await sam.get('/agent/runs?status=EXPIRED')).body.records;
    assert.deepEqual(
      listed.map((run: { runId: string }) => run.runId),
      [runId],
    );
    await expireDue(database, new AbortController().signal, (_, error) => assert.fail(String(error)));
    const { rows } = await database.query('SELECT status FROM agent.runs WHERE run_id = $1', [runId]);
    assert.deepEqual(rows, [{ status: 'EXPIRED' }]);
    assert.deepEqual(await events(context.tenantId, runId), [
      'agent.approval.requested',
      'agent.run.created',
      'agent.run.expired',
      'agent.run.waitingApproval',
    ]);
  });

  it('comes when a call finds their time over, with its event', async () => {
    const { runId } = (await sam.post('/agent/runs', GOAL)).body;
    const context = await contextOf(sam);
    await outlive(runId);
    const refused = await admit(platform, context, aList(runId)).catch((error) => error);
    assert.deepEqual([refused.code, refused.details], ['RUN_NOT_ACTIVE', { status: 'EXPIRED' }]);
    assert.ok((await events(context.tenantId, runId)).includes('agent.run.expired'));
  });

  it('comes with the authorization under which they began', async () => {
    const other = api(
      platform.baseUrl,
      (await signIn({ baseUrl: platform.baseUrl, user: 'sue@demo.example', password: 'demo-password' })).access_token,
    );
    const { runId } = (await other.post('/agent/runs', GOAL)).body;
    const { connection } = (await other.get('/identity')).body;
    assert.equal((await other.delete(`/me/connections/${connection.grantId}`)).status, 204);
    const sue = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sue'));
    for (let attempt = 0; ; attempt++) {
      const { status } = (await sue.get(`/agent/runs/${runId}`)).body;
      if (status === 'CANCELED') break;
      assert.ok(attempt < 100, `the run is ${status}`);
      await pause(20);
    }
  });

  it('comes with it also when nobody was told', async () => {
    const { runId } = (await sam.post('/agent/runs', GOAL)).body;
    const live = (await sam.post('/agent/runs', GOAL)).body.runId;
    await database.query(`UPDATE agent.runs SET grant_id = 'gone' WHERE run_id = $1`, [runId]);
    await cancelUnauthorized(database, platform.broker, new AbortController().signal);
    assert.equal((await sam.get(`/agent/runs/${runId}`)).body.status, 'CANCELED');
    assert.equal((await sam.get(`/agent/runs/${live}`)).body.status, 'RUNNING');
  });

  it('is followed by their removal after half a year', async () => {
    const { runId } = (await sam.post('/agent/runs', GOAL)).body;
    await sam.post(`/agent/runs/${runId}/cancel`);
    await database.query(`UPDATE agent.runs SET ended_at = now() - interval '181 days' WHERE run_id = $1`, [runId]);
    await expireDue(database, new AbortController().signal, (_, error) => assert.fail(String(error)));
    assert.equal((await sam.get(`/agent/runs/${runId}`)).status, 404);
  });
});
