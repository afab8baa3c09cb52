/** Reverting an agent run over HTTP: from the first call of the run to the audit trail of the revert. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

/** The agents of these tests may do anything with accounts. */
const POLICY = [
  'type: AgentPolicy',
  'apiName: Free',
  'appliesTo:',
  '  clients:',
  '    - erp-cli',
  'rules:',
  '  - operationIds:',
  '      - data.*',
  '    objects:',
  '      - Account',
  '    decision: allow',
  '',
].join('\n');

describe('reverting an agent run over HTTP', () => {
  let platform: TestPlatform;
  let ada: Api;
  let mia: Api;
  let sam: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    const sign = async (user: string, scope?: string) =>
      api(platform.baseUrl, await tokenFor(platform.baseUrl, user, scope));
    [ada, mia, sam] = [await sign('ada'), await sign('mia'), await sign('sam')];
    await deployOverHttp(ada, { 'agentPolicies/Free.yaml': POLICY });
  });
  after(() => platform?.stop());

  const beginRun = async (who: Api): Promise<string> => {
    const begun = await who.post('/agent/runs', { agentKey: 'tidy', goal: 'Tidy up.' });
    assert.equal(begun.status, 201, begun.text);
    return begun.body.runId;
  };
  const complete = async (who: Api, runId: string) => {
    const done = await who.post(`/agent/runs/${runId}/complete`, { outcome: 'succeeded', summary: 'Done.' });
    assert.equal(done.status, 201, done.text);
  };
  const account = async (body: object = {}, headers: Record<string, string> = {}, who = sam): Promise<string> => {
    const created = await who.post('/data/Account', { name: randomUUID(), ...body }, { headers });
    assert.equal(created.status, 201, created.text);
    return created.body.id;
  };
  const named = (id: string) => ({ objectApiName: 'Account', id });

  it('restores records, and shows everything by the run', async () => {
    const [changed, removed] = [await account({ city: 'Berlin' }), await account()];
    const runId = await beginRun(ada);
    const headers = { 'x-agent-run-id': runId };
    const updated = await ada.patch(`/data/Account/${changed}`, { city: 'Hamburg' }, { etag: '"1"', headers });
    assert.equal(updated.status, 200, updated.text);
    const deleted = await ada.delete(`/data/Account/${removed}`, { etag: '"1"', headers });
    assert.equal(deleted.status, 200, deleted.text);
    const created = await account({}, headers, ada);
    await complete(ada, runId);

    const { records: steps } = (await ada.get(`/agent/runs/${runId}/steps`)).body;
    assert.deepEqual(
      steps.map((step: { operationId: string; recordsChanged: object[] }) => [step.operationId, step.recordsChanged]),
      [
        ['data.records.update', [named(changed)]],
        ['data.records.delete', [named(removed)]],
        ['data.records.create', [named(created)]],
      ],
    );

    const reverted = await ada.post(`/agent/runs/${runId}/revert`);
    assert.equal(reverted.status, 201, reverted.text);
    assert.deepEqual(reverted.body, {
      reverted: [named(created), named(removed), named(changed)],
      skipped: [],
      remaining: 0,
    });
    assert.equal((await ada.get(`/data/Account/${created}`)).status, 404);
    assert.equal((await ada.get(`/data/Account/${removed}`)).status, 200);
    assert.equal((await ada.get(`/data/Account/${changed}`)).body.city, 'Berlin');

    const { records } = (await ada.get(`/events/audit?agentRunId=${runId}&outcome=committed&take=50`)).body;
    const operations = records.map(({ operationId }: { operationId: string }) => operationId).reverse();
    const ofRecords = operations.filter((name: string) => name.startsWith('data.') || name.endsWith('revert'));
    assert.deepEqual(ofRecords, [
      'data.records.update',
      'data.records.delete',
      'data.records.create',
      ...Array.from({ length: 4 }, () => 'agent.runs.revert'),
    ]);
    const history = await ada.get(`/data/Account/${changed}/history?agentRunId=${runId}`);
    assert.equal(history.body.records.length, 2);
  });

  it('links preview, decision, effect and revert of a call by one run', async () => {
    const person = (await sam.post('/data/Contact', { name: randomUUID() })).body;
    const runId = await beginRun(ada);
    const attempt = { headers: { 'x-agent-run-id': runId }, etag: '"1"', idempotencyKey: randomUUID() };
    const asked = await ada.delete(`/data/Contact/${person.id}`, attempt);
    assert.deepEqual([asked.status, asked.body.code], [403, 'APPROVAL_REQUIRED'], asked.text);
    const { approvalId, fingerprint } = asked.body.details;
    const approval = await ada.get(`/agent/approvals/${approvalId}`);
    assert.equal(approval.body.preview.effects[0].id, person.id, approval.text);
    const decided = await mia.post(`/agent/approvals/${approvalId}/decision`, { decision: 'approve', fingerprint });
    assert.equal(decided.status, 201, decided.text);
    const done = await ada.delete(`/data/Contact/${person.id}`, attempt);
    assert.equal(done.status, 200, done.text);
    await complete(ada, runId);
    const reverted = await ada.post(`/agent/runs/${runId}/revert`);
    assert.deepEqual(reverted.body.reverted, [{ objectApiName: 'Contact', id: person.id }]);

    const { records } = (await ada.get(`/events/audit?agentRunId=${runId}&outcome=committed&take=50`)).body;
    assert.deepEqual(
      records.map(({ operationId, recordId }: { operationId: string; recordId: string | null }) => [
        operationId,
        recordId,
      ]),
      [
        ['agent.runs.revert', null],
        ['agent.runs.revert', person.id],
        ['agent.runs.complete', null],
        ['data.records.delete', person.id],
        ['agent.approvals.decide', null],
        ['agent.runs.create', null],
      ],
    );
    const { records: steps } = (await ada.get(`/agent/runs/${runId}/steps`)).body;
    assert.deepEqual(
      steps.map((step: { status: number; approvalId: string; recordsChanged: object[] }) => [
        step.status,
        step.approvalId,
        step.recordsChanged.length,
      ]),
      [
        [403, approvalId, 0],
        [200, approvalId, 1],
      ],
    );
  });

  it('answers the same key with the stored answer', async () => {
    const id = await account({ city: 'Berlin' });
    const runId = await beginRun(sam);
    await sam.patch(`/data/Account/${id}`, { city: 'Bonn' }, { etag: '"1"', headers: { 'x-agent-run-id': runId } });
    await complete(sam, runId);
    const key = { idempotencyKey: randomUUID() };
    const first = await mia.post(`/agent/runs/${runId}/revert`, undefined, key);
    assert.deepEqual(first.body, { reverted: [named(id)], skipped: [], remaining: 0 });
    const second = await mia.post(`/agent/runs/${runId}/revert`, undefined, key);
    assert.deepEqual(second.body, first.body);
    assert.equal(second.headers.get('idempotency-replayed'), 'true');
    const other = await mia.post(`/agent/runs/${await beginRun(sam)}/revert`, undefined, key);
    assert.deepEqual([other.status, other.body.code], [409, 'IDEMPOTENCY_KEY_REUSED']);
  });

  it('is refused for active and unknown runs, and for those of another tenant', async () => {
    const runId = await beginRun(sam);
    const active = await mia.post(`/agent/runs/${runId}/revert`);
    assert.deepEqual([active.status, active.body.code], [409, 'STATE_CONFLICT'], active.text);
    assert.equal(active.body.details.currentState, 'RUNNING');
    assert.equal((await sam.post(`/agent/runs/${runId}/cancel`)).status, 201);
    assert.equal((await mia.post(`/agent/runs/${runId.toUpperCase()}/revert`)).status, 201);
    const eve = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'eve'));
    for (const [who, id] of [
      [mia, randomUUID()],
      [eve, runId],
    ] as const) {
      const unknown = await who.post(`/agent/runs/${id}/revert`);
      assert.deepEqual([unknown.status, unknown.body.code], [404, 'RUN_NOT_FOUND'], unknown.text);
    }
  });

  it('requires the scope, the permission and a caller outside of runs', async () => {
    const runId = await beginRun(sam);
    await complete(sam, runId);
    const path = `/agent/runs/${runId}/revert`;
    const own = await sam.post(path);
    assert.deepEqual([own.status, own.body.details.permission], [403, 'approveAgentActions'], own.text);
    const narrow = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia', 'agent:run data:write'));
    assert.equal((await narrow.post(path)).body.code, 'SCOPE_INSUFFICIENT');
    assert.equal((await mia.post(path, undefined, { idempotencyKey: null })).body.code, 'IDEMPOTENCY_KEY_REQUIRED');
    const within = await mia.post(path, undefined, { headers: { 'x-agent-run-id': await beginRun(mia) } });
    assert.deepEqual([within.status, within.body.code], [403, 'APPROVAL_ACTOR_NOT_HUMAN'], within.text);
    assert.equal((await mia.post(path)).status, 201);
  });
});
