/** Composite requests of agents: every part is judged as if it had come alone. */
import assert from 'node:assert/strict';
import { signIn } from '../../../scripts/sign-in.ts';
import { type Answer, type Api, api, demoPassword, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

describe('composite requests of agents', () => {
  let platform: TestPlatform;
  let agent: Api;
  let account: Record<string, string>;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    const { baseUrl } = platform;
    const ada = api(baseUrl, await tokenFor(baseUrl, 'ada'));
    const { access_token } = await signIn({
      baseUrl,
      user: 'sam@demo.example',
      password: demoPassword(),
      clientId: 'demo-DunningAgent',
      scope: 'data:read data:write actions:read actions:execute agent:run offline_access',
    });
    agent = api(baseUrl, access_token);
    account = (await ada.get('/data/Account?take=1')).body.records[0];
  });
  after(() => platform?.stop());

  const run = async (more: object = {}): Promise<string> => {
    const reply = await agent.post('/agent/runs', { agentKey: 'composite', goal: 'Try parts.', ...more });
    assert.equal(reply.status, 201, reply.text);
    return reply.body.runId;
  };
  const send = (runId: string | null, requests: readonly object[], more: object = {}): Promise<Answer> =>
    agent.post('/composite', { requests, ...more }, runId === null ? {} : { headers: { 'x-agent-run-id': runId } });
  const contact = (referenceId: string): object => ({
    referenceId,
    method: 'POST',
    path: '/data/Contact',
    body: { name: `Part ${referenceId}`, lastName: 'Part', accountId: account['id'] },
  });
  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body.code], [status, code], reply.text);

  it('belong to a run, and take its budget for each part', async () => {
    refused(await send(null, [contact('a')]), 403, 'AGENT_POLICY_DENIED');
    const runId = await run({ budget: { maxMutations: 2 } });
    const reply = await send(runId, [contact('a'), contact('b')]);
    assert.equal(reply.status, 200, reply.text);
    refused(await send(runId, [contact('c')]), 403, 'AGENT_BUDGET_EXCEEDED');
  });

  it('leave nothing in a dry run', async () => {
    const runId = await run({ dryRun: true });
    const reply = await send(runId, [contact('a'), { referenceId: 'b', method: 'GET', path: '/data/Contact/@{a.id}' }]);
    assert.deepEqual([reply.status, reply.body.committed], [200, false], reply.text);
  });
});
