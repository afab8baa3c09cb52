/** Runs of agents over HTTP: their lifecycle, visibility and refusals. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type { Admission } from '../../../contracts/agent.ts';
import { call } from '../../../contracts/call.ts';
import { type RequestContext, tenantSchema } from '../../../lib/context.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { Database } from '../../../mixins/database/database.ts';
import { signIn } from '../../../scripts/sign-in.ts';
import { cancelUnauthorized, expireDue } from '../../../services/agent/upkeep/upkeep.ts';
import { aDeletion, admit, aList, contextOf } from '../../support/agents.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { until } from '../../support/until.ts';

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

  it('end with the reported result, and stay ended', async () => {
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

  it('are refused with all their violations', async () => {
    const wrong = await sam.post('/agent/runs', {
      agentKey: 'Dunning!',
      goal: '',
      context: { objectApiName: 'Invoice__c', recordId: 'none', more: 1 },
      plan: [{ stepKey: 'a' }],
      budget: { maxCost: 10_001, maxMutations: -1, maxRecords: 1.5 },
      expiresInSeconds: 59,
      dryRun: 'yes',
      owner: 'me',
    });
    assert.equal(wrong.status, 400, wrong.text);
    assert.deepEqual(wrong.body.errors.map(({ pointer }: { pointer: string }) => pointer).sort(), [
      '/agentKey',
      '/budget/maxCost',
      '/budget/maxMutations',
      '/budget/maxRecords',
      '/context/more',
      '/context/recordId',
      '/dryRun',
      '/expiresInSeconds',
      '/goal',
      '/owner',
      '/plan/0/operationId',
      '/plan/0/summary',
    ]);
    for (const goal of [' \u3000\n', `a${'\u0301'.repeat(3_999)}`]) {
      const unread = await sam.post('/agent/runs', { ...GOAL, goal });
      assert.deepEqual([unread.status, unread.body.errors?.[0].pointer], [422, '/goal'], unread.text);
    }
    const recordId = uuidv7();
    const unknown = await sam.post('/agent/runs', { ...GOAL, context: { objectApiName: 'Nowhere__c', recordId } });
    assert.deepEqual([unknown.status, unknown.body.code], [422, 'VALIDATION_FAILED'], unknown.text);
    assert.equal(unknown.body.errors[0].pointer, '/context/objectApiName');
    const { runId } = (await sam.post('/agent/runs', GOAL)).body;
    const long = { outcome: 'succeeded', summary: '', output: { text: 'x'.repeat(256 * 1024) } };
    const large = await sam.post(`/agent/runs/${runId}/complete`, long);
    assert.deepEqual([large.status, large.body.code], [413, 'REQUEST_TOO_LARGE'], large.text);
    assert.deepEqual(large.body.details, { maxBytes: 256 * 1024 });
  });

  it('accept a description of themselves', async () => {
    const said = {
      ...GOAL,
      agentVersion: '1.4.0',
      context: { objectApiName: 'Invoice__c', recordId: uuidv7() },
      plan: [{ stepKey: 'find', operationId: 'data.records.list', summary: 'Find overdue invoices.' }],
      budget: { maxCost: 10_000, maxMutations: 0, maxRecords: 10_000 },
      dryRun: true,
    };
    const created = await sam.post('/agent/runs', { ...said, expiresInSeconds: 86_400 });
    assert.equal(created.status, 201, created.text);
    const { agentVersion, context, plan, budget, dryRun, agentKey, goal } = created.body;
    assert.deepEqual({ agentKey, goal, agentVersion, context, plan, budget, dryRun }, said);
    assert.equal(Date.parse(created.body.expiresAt) - Date.parse(created.body.createdAt), 86_400_000);
  });

  it('are listed newest first, page by page, to permitted users', async () => {
    const sue = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sue'));
    const mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.unshift((await sue.post('/agent/runs', { ...GOAL, agentKey: 'pages' })).body.runId);
    const seen: string[] = [];
    let cursor = '';
    do {
      const page = await sue.get(`/agent/runs?agentKey=pages&take=2${cursor}`);
      assert.equal(page.status, 200, page.text);
      seen.push(...page.body.records.map(({ runId }: { runId: string }) => runId));
      cursor = page.body.nextCursor && `&cursor=${encodeURIComponent(page.body.nextCursor)}`;
    } while (cursor);
    assert.deepEqual(seen, ids);
    const list = async (who: Api, more = ''): Promise<number> =>
      (await who.get(`/agent/runs?agentKey=pages${more}`)).body.records.length;
    assert.deepEqual([await list(sam), await list(mia), await list(mia, '&mine=true')], [0, 3, 0]);
    const first = await sue.get('/agent/runs?agentKey=pages&take=1');
    const mixed = await sue.get(`/agent/runs?take=1&cursor=${encodeURIComponent(first.body.nextCursor)}`);
    assert.deepEqual([mixed.status, mixed.body.code], [400, 'CURSOR_QUERY_MISMATCH'], mixed.text);
    for (const query of ['take=0', 'take=x', 'status=SLEEPING', 'mine=perhaps', 'cursor=made-up'])
      assert.equal((await sue.get(`/agent/runs?${query}`)).status, 400, query);
    const most = await sue.get('/agent/runs?take=1000');
    assert.equal(most.headers.get('x-effective-take'), '200');
    for (const path of ['', '/steps']) {
      const hidden = await sam.get(`/agent/runs/${ids[0]}${path}`);
      assert.deepEqual([hidden.status, hidden.body.code], [404, 'RUN_NOT_FOUND'], hidden.text);
      assert.equal((await mia.get(`/agent/runs/${ids[0]}${path}`)).status, 200, 'who oversees agents');
    }
    const foreign = await sam.post(`/agent/runs/${ids[0]}/cancel`);
    assert.deepEqual([foreign.status, foreign.body.code], [404, 'RUN_NOT_FOUND']);
    const stolen = await mia.post(`/agent/runs/${ids[0]}/complete`, { outcome: 'succeeded', summary: '' });
    assert.deepEqual([stolen.status, stolen.body.code], [404, 'RUN_NOT_FOUND']);
    const stopped = await mia.post(`/agent/runs/${ids[0]}/cancel`);
    assert.deepEqual([stopped.status, stopped.body.status, stopped.body.outcome], [201, 'CANCELED', 'canceled']);
  });

  it('are limited to 50 per user at a time', async () => {
    const fay = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'fay'));
    const created = await Promise.all(Array.from({ length: 60 }, () => fay.post('/agent/runs', GOAL)));
    assert.equal(created.filter(({ status }) => status === 201).length, 50);
    for (const { status } of created) assert.ok([201, 429].includes(status), String(status));
    const beyond = await fay.post('/agent/runs', GOAL);
    assert.deepEqual([beyond.status, beyond.body.code], [429, 'CONCURRENCY_LIMIT_EXCEEDED'], beyond.text);
    assert.deepEqual(beyond.body.details, { max: 50 });
    const active = created.find(({ status }) => status === 201);
    await fay.post(`/agent/runs/${active?.body.runId}/cancel`);
    assert.equal((await fay.post('/agent/runs', GOAL)).status, 201);
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
  const trail = async (runId: string, operationId: string) => {
    const ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    const { records } = (await ada.get(`/events/audit?agentRunId=${runId}`)).body;
    return records
      .filter((entry: { operationId: string }) => entry.operationId === operationId)
      .map((entry: { changes: { field: string; from: unknown; to: unknown }[] }) => ({
        ...entry,
        changes: Object.fromEntries(entry.changes.map(({ field, from, to }) => [field, { from, to }])),
      }));
  };
  /** Moves a run past its deadline. */
  const outlive = (runId: string): Promise<unknown> =>
    database.query(`UPDATE agent.runs SET expires_at = clock_timestamp() WHERE run_id = $1`, [runId]);

  it('comes with their deadline for every reader at once, and is recorded by a job', async () => {
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
    const [entry] = await trail(runId, 'agent.runs.expire');
    assert.deepEqual([entry.actor.userId, entry.channel, entry.outcome], [null, 'job', 'committed']);
    assert.deepEqual(entry.changes, {
      runId: { from: runId, to: runId },
      status: { from: 'RUNNING', to: 'EXPIRED' },
      openApprovals: { from: [approvalId], to: [] },
    });
  });

  it('is never earlier than that of an approval, whose expiry is audited as well', async () => {
    const { runId, expiresAt } = (await sam.post('/agent/runs', { ...GOAL, expiresInSeconds: 600 })).body;
    const asked = await admit(platform, await contextOf(sam), aDeletion(runId)).catch((error) => error);
    const { approvalId } = asked.details;
    assert.equal(Date.parse(asked.details.expiresAt), Date.parse(expiresAt));
    assert.equal((await sam.get(`/agent/approvals/${approvalId}`)).body.expiresAt, expiresAt);
    await database.query('UPDATE agent.approvals SET expires_at = clock_timestamp() WHERE approval_id = $1', [
      approvalId,
    ]);
    await expireDue(database, new AbortController().signal, (_, error) => assert.fail(String(error)));
    const [entry] = await trail(runId, 'agent.approvals.expire');
    assert.deepEqual(entry.changes, {
      approvalId: { from: approvalId, to: approvalId },
      status: { from: 'PENDING', to: 'EXPIRED' },
    });
  });

  it("can be set by an operator, who sees a tenant's active runs but none of the agents' texts", async () => {
    const [first, second] = [await sam.post('/agent/runs', GOAL), await sam.post('/agent/runs', GOAL)];
    const { tenantId } = await contextOf(sam);
    const asked = await admit(platform, await contextOf(sam), aDeletion(first.body.runId)).catch((error) => error);
    const { broker } = platform;
    const { runs } = await call(broker, 'agent.tenants.listRuns', { tenantId });
    const { runId, agentKey, userId, clientId, createdAt, expiresAt } = first.body;
    assert.deepEqual(
      runs.find((run) => run.runId === runId),
      { runId, agentKey, userId, clientId, createdAt, expiresAt, waiting: 1 },
    );
    const { canceled } = await call(broker, 'agent.tenants.cancelRuns', { tenantId, runIds: [runId] });
    assert.deepEqual(canceled, [runId]);
    assert.equal((await sam.get(`/agent/runs/${runId}`)).body.status, 'CANCELED');
    assert.equal((await sam.get(`/agent/runs/${second.body.runId}`)).body.status, 'RUNNING');
    const [entry] = await trail(runId, 'agent.tenants.cancelRuns');
    assert.deepEqual(entry.changes.openApprovals, { from: [asked.details.approvalId], to: [] });
    const all = await call(broker, 'agent.tenants.cancelRuns', { tenantId });
    assert.ok(all.canceled.includes(second.body.runId));
    assert.deepEqual(await call(broker, 'agent.tenants.listRuns', { tenantId }), { runs: [] });
    assert.deepEqual(await call(broker, 'agent.tenants.cancelRuns', { tenantId: uuidv7() }), { canceled: [] });
    const refused = await call(broker, 'agent.tenants.listRuns', { tenantId: 'demo' }).catch((error) => error);
    assert.equal(refused.code, 'VALIDATION_FAILED');
  });

  it('shows in the metrics the active runs, and the delay of recording their end', async () => {
    const metric = async (name: string): Promise<number> => {
      const text = await (await fetch(`${platform.baseUrl}/metrics`)).text();
      return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
    };
    const { runId } = (await sam.post('/agent/runs', GOAL)).body;
    await admit(platform, await contextOf(sam), aDeletion(runId)).catch((error) => error);
    for (let attempt = 0; (await metric('erp_agent_runs_active')) === 0; attempt++) {
      assert.ok(attempt < 50, 'no run is active');
      await pause(500);
    }
    assert.ok((await metric('erp_agent_approvals_waiting')) >= 1);
    assert.ok((await metric('erp_agent_expiry_lag_seconds')) < 60);
  });

  it('comes with its event when a call finds their deadline passed', async () => {
    const { runId } = (await sam.post('/agent/runs', GOAL)).body;
    const context = await contextOf(sam);
    await outlive(runId);
    const refused = await admit(platform, context, aList(runId)).catch((error) => error);
    assert.deepEqual([refused.code, refused.details], ['RUN_NOT_ACTIVE', { status: 'EXPIRED' }]);
    assert.ok((await events(context.tenantId, runId)).includes('agent.run.expired'));
    assert.equal((await trail(runId, 'agent.runs.expire')).length, 1);
  });

  it('comes with the end of the grant under which they began', async () => {
    const other = api(
      platform.baseUrl,
      (await signIn({ baseUrl: platform.baseUrl, user: 'sue@demo.example', password: 'demo-password' })).access_token,
    );
    const { runId } = (await other.post('/agent/runs', GOAL)).body;
    const { connection } = (await other.get('/identity')).body;
    assert.equal((await other.delete(`/me/connections/${connection.grantId}`)).status, 204);
    const sue = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sue'));
    await until(async () => (await sue.get(`/agent/runs/${runId}`)).body.status === 'CANCELED');
    const [entry] = await trail(runId, 'agent.runs.cancel');
    assert.deepEqual([entry.channel, entry.changes.status], ['job', { from: 'RUNNING', to: 'CANCELED' }]);
  });

  it('comes when the client revokes its token', async () => {
    const { baseUrl } = platform;
    const { access_token, refresh_token = '' } = await signIn({
      baseUrl,
      user: 'sue@demo.example',
      password: 'demo-password',
    });
    const { runId } = (await api(baseUrl, access_token).post('/agent/runs', GOAL)).body;
    const body = new URLSearchParams({ client_id: 'erp-cli', token: refresh_token });
    assert.equal((await fetch(`${baseUrl}/oauth2/revoke`, { method: 'POST', body })).status, 200);
    const sue = api(baseUrl, await tokenFor(baseUrl, 'sue'));
    await until(async () => (await sue.get(`/agent/runs/${runId}`)).body.status === 'CANCELED');
  });

  describe('comes with the client', () => {
    const clientId = 'demo-DunningAgent';
    const path = 'externalClients/DunningAgent.yaml';
    let ada: Api;
    let yaml: string;
    before(async () => {
      ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
      yaml = await readFile(new URL(`../../../templates/erp/${path}`, import.meta.url), 'utf8');
    });
    interface Agent {
      readonly agent: Api;
      readonly context: RequestContext;
    }
    const signInAgent = async (): Promise<Agent> => {
      const { baseUrl } = platform;
      const signedIn = await signIn({
        baseUrl,
        user: 'sam@demo.example',
        password: 'demo-password',
        clientId,
        scope: 'agent:run data:read',
      });
      const agent = api(baseUrl, signedIn.access_token);
      return { agent, context: await contextOf(agent) };
    };
    interface Asked {
      readonly admission: Admission;
      readonly approvalId: string;
      readonly fingerprint: string;
    }
    interface Begun {
      readonly runId: string;
      readonly pending: Asked;
      readonly approved: Asked;
    }
    /** A run with one waiting and one approved request. */
    const begin = async ({ agent, context }: Agent): Promise<Begun> => {
      const { runId } = (await agent.post('/agent/runs', GOAL)).body;
      const { id } = (await ada.get('/data/Invoice__c?take=1')).body.records[0];
      const ask = async (ifMatch: string): Promise<Asked> => {
        const admission = aDeletion(runId, { id, fingerprint: uuidv7(), headers: { 'if-match': ifMatch } });
        const { details } = await admit(platform, context, admission).catch((error) => error);
        return { admission, approvalId: details.approvalId, fingerprint: details.fingerprint };
      };
      const [pending, approved] = [await ask('"1"'), await ask('"2"')];
      assert.equal((await decide(approved)).status, 201);
      return { runId, pending, approved };
    };
    const decide = ({ approvalId, fingerprint }: Asked): Promise<Answer> =>
      ada.post(`/agent/approvals/${approvalId}/decision`, { decision: 'approve', fingerprint });

    const looks: Readonly<Record<string, (run: Begun, context: RequestContext) => Promise<unknown>>> = {
      'a decision': async ({ pending }) => {
        const { body } = await decide(pending);
        return [body.code, body.details?.status];
      },
      'a call that uses an approval': async ({ approved }, context) => {
        const { code, details } = await admit(platform, context, approved.admission).catch((error) => error);
        return [code, details?.status];
      },
      'a read of it': async ({ runId }) => (await sam.get(`/agent/runs/${runId}`)).body.status,
      'a list': async ({ runId }) => {
        const { records } = (await sam.get('/agent/runs?agentKey=dunning&take=200')).body;
        return records.find((one: { runId: string }) => one.runId === runId).status;
      },
      'a read of a pending approval': async ({ pending }) =>
        (await ada.get(`/agent/approvals/${pending.approvalId}`)).body.status,
    };
    const seen: Readonly<Record<string, unknown>> = {
      'a decision': ['APPROVAL_ALREADY_DECIDED', 'CANCELED'],
      'a call that uses an approval': ['RUN_NOT_ACTIVE', 'CANCELED'],
    };
    for (const [title, look] of Object.entries(looks))
      it(`for ${title} at once, when it is set inactive`, async () => {
        const { agent, context } = await signInAgent();
        const run = await begin({ agent, context });
        await deployOverHttp(ada, { [path]: yaml.replace('active: true', 'active: false') });
        try {
          assert.deepEqual(await look(run, context), seen[title] ?? 'CANCELED');
        } finally {
          await deployOverHttp(ada, { [path]: yaml });
        }
        assert.equal((await sam.get(`/agent/runs/${run.runId}`)).body.status, 'CANCELED', 'for good');
        for (const { approvalId } of [run.pending, run.approved])
          assert.equal((await ada.get(`/agent/approvals/${approvalId}`)).body.status, 'CANCELED');
        assert.ok((await events(context.tenantId, run.runId)).includes('agent.run.canceled'));
      });

    it('and prevents new ones, while those of other clients continue', async () => {
      const { agent } = await signInAgent();
      const other = (await sam.post('/agent/runs', GOAL)).body.runId;
      await deployOverHttp(ada, { [path]: yaml.replace('active: true', 'active: false') });
      try {
        const refused = await agent.post('/agent/runs', GOAL);
        assert.deepEqual([refused.status, refused.body.code], [403, 'CLIENT_DISABLED'], refused.text);
        assert.equal((await sam.get(`/agent/runs/${other}`)).body.status, 'RUNNING');
      } finally {
        await deployOverHttp(ada, { [path]: yaml });
      }
    });
  });

  it('comes also when the notification was lost', async () => {
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
