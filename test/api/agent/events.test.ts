/** Events of runs and approvals: every event of the reference, once each, in the outbox of the tenant. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { tenantSchema } from '../../../lib/context.ts';
import { Database } from '../../../mixins/database/database.ts';
import { expireDue } from '../../../services/agent/upkeep/upkeep.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const POLICY = [
  'type: AgentPolicy',
  'apiName: Ask',
  'appliesTo:',
  '  clients:',
  '    - erp-cli',
  'rules:',
  '  - operationIds:',
  '      - data.records.create',
  '    decision: approve',
  '',
].join('\n');

describe('events of agents', function () {
  this.timeout(120_000);
  let platform: TestPlatform;
  let database: Database;
  let ada: Api;
  let sam: Api;
  let outbox: string;
  before(async () => {
    platform = await startPlatform();
    const sign = async (user: string) => api(platform.baseUrl, await tokenFor(platform.baseUrl, user));
    [ada, sam] = [await sign('ada'), await sign('sam')];
    await deployOverHttp(ada, { 'agentPolicies/Ask.yaml': POLICY });
    database = new Database(platform.database.url, { size: 2, applicationName: 'agent events test' });
    outbox = `"${tenantSchema((await sam.get('/identity')).body.tenant.id)}"._outbox`;
  });
  after(async () => {
    await database?.close();
    await platform?.stop();
  });

  const begin = async (): Promise<string> =>
    (await sam.post('/agent/runs', { agentKey: 'events', goal: 'Be heard.' })).body.runId;
  const complete = (runId: string, outcome: string): Promise<Answer> =>
    sam.post(`/agent/runs/${runId}/complete`, { outcome, summary: 'Done.' });
  /** A request that waits for approval, to be sent again as it is. */
  const asking = async (runId: string) => {
    const [body, options] = [
      { name: randomUUID() },
      { headers: { 'x-agent-run-id': runId }, idempotencyKey: randomUUID() },
    ];
    const send = (): Promise<Answer> => sam.post('/data/Account', body, options);
    const asked = await send();
    assert.equal(asked.body.code, 'APPROVAL_REQUIRED', asked.text);
    return { send, ...(asked.body.details as { approvalId: string; fingerprint: string }) };
  };
  const eventsOf = async (runId: string) =>
    (
      await database.query<{ type: string; data: Record<string, unknown>; run: string | null }>(
        `SELECT type, data, agent_run_id AS run FROM ${outbox} WHERE data ->> 'runId' = $1 ORDER BY outbox_id`,
        [runId],
      )
    ).rows;
  const typesOf = async (runId: string): Promise<string[]> => (await eventsOf(runId)).map(({ type }) => type);
  const upkeep = (): Promise<void> =>
    expireDue(database, new AbortController().signal, (_, error) => assert.fail(String(error)));

  it('report a change from its request to its revert', async () => {
    const runId = await begin();
    const { send, approvalId, fingerprint } = await asking(runId);
    await ada.post(`/agent/approvals/${approvalId}/decision`, { decision: 'approve', fingerprint });
    for (let time = 1; time <= 2; time++) assert.equal((await send()).status, 201);
    await complete(runId, 'succeeded');
    const reverted = await ada.post(`/agent/runs/${runId}/revert`);
    assert.equal(reverted.status, 201, reverted.text);
    assert.deepEqual(await typesOf(runId), [
      'agent.run.created',
      'agent.approval.requested',
      'agent.run.waitingApproval',
      'agent.approval.decided',
      'agent.approval.consumed',
      'agent.run.completed',
      'agent.run.reverted',
    ]);
    const consumed = (await eventsOf(runId)).find(({ type }) => type === 'agent.approval.consumed');
    assert.deepEqual(consumed, {
      type: 'agent.approval.consumed',
      data: { approvalId, runId, operationId: 'data.records.create' },
      run: runId,
    });
  });

  it('report once that an approval has expired, whichever process notices first', async () => {
    for (const noticed of ['repetition', 'upkeep']) {
      const runId = await begin();
      const { send, approvalId } = await asking(runId);
      await database.query('UPDATE agent.approvals SET expires_at = clock_timestamp() WHERE approval_id = $1', [
        approvalId,
      ]);
      const twice = [send, upkeep];
      for (const notice of noticed === 'repetition' ? twice : twice.reverse()) await notice();
      await complete(runId, 'failed');
      assert.deepEqual(
        await typesOf(runId),
        [
          'agent.run.created',
          'agent.approval.requested',
          'agent.run.waitingApproval',
          'agent.approval.expired',
          'agent.run.failed',
        ],
        noticed,
      );
    }
  });

  it('report how an incomplete run ended', async () => {
    const [canceled, expired] = [await begin(), await begin()];
    await sam.post(`/agent/runs/${canceled}/cancel`);
    await database.query('UPDATE agent.runs SET expires_at = clock_timestamp() WHERE run_id = $1', [expired]);
    await upkeep();
    assert.deepEqual(await typesOf(canceled), ['agent.run.created', 'agent.run.canceled']);
    assert.deepEqual(await typesOf(expired), ['agent.run.created', 'agent.run.expired']);
  });
});
