/** Jobs of agents, which end with their run, and confirm no duplicates: a person must have seen each. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Api, CallOptions } from '../../support/client.ts';
import { ended, refused, results, upload, whileJobsWait } from '../bulk/bulk.ts';
import { type Deals, startDeals } from '../data/deals.ts';

describe('bulk jobs of agents', function () {
  this.timeout(180_000);
  let deals: Deals;
  let sam: Api;
  before(async () => {
    deals = await startDeals();
    ({ sam } = deals.as);
    const rules = [{ operationIds: ['bulk.*'], decision: 'allow' }];
    const policy = { type: 'AgentPolicy', apiName: 'Bulk', appliesTo: { clients: ['*'] }, rules };
    await deals.deploy({ 'agentPolicies/Bulk.yaml': JSON.stringify(policy) });
  });
  after(() => deals?.platform.stop());

  it('confirm no duplicates', async () => {
    const account = { name: `Twin ${randomUUID()}`, TaxId__c: 'DE811907980' };
    assert.equal((await sam.post('/data/Account', account)).status, 201);
    const again = await sam.post('/data/Account', account);
    refused(again, 409, 'DUPLICATE_RULE');
    const { runId } = (await sam.post('/agent/runs', { agentKey: 'importer', goal: 'Import accounts.' })).body;
    const inRun: CallOptions = { headers: { 'x-agent-run-id': runId } };
    const body = { operation: 'create', objectApiName: 'Account', format: 'csv' };
    refused(await sam.post('/bulk/jobs', { ...body, duplicatePolicy: 'report' }, inRun), 400, 'PARAMETER_CONFLICT');
    for (const [duplicatePolicy, options] of [
      ['reject', inRun],
      // Such a job of a person may be started under a run.
      ['report', {}],
    ] as const) {
      const created = await sam.post('/bulk/jobs', { ...body, duplicatePolicy }, options);
      assert.equal(created.status, 201, created.text);
      const { jobId } = created.body;
      const row = `${account.name},${account.TaxId__c},${again.body.details.confirmationToken}`;
      const part = await upload(sam, jobId, 1, `name,TaxId__c,_duplicateConfirmation\n${row}\n`, options);
      assert.equal(part.status, 201, part.text);
      assert.equal((await sam.post(`/bulk/jobs/${jobId}/start`, undefined, inRun)).status, 202);
      assert.equal((await ended(sam, jobId)).counts.failed, 1);
      const [{ errors }] = await results(sam, jobId);
      assert.equal(errors[0].code, 'DUPLICATE_RULE');
    }
  });

  it('are canceled when their run was canceled or has expired, and go on when it was completed', async () => {
    const jobs: { runId: string; jobId: string }[] = [];
    await whileJobsWait(deals.platform.database.url, async (client) => {
      for (let i = 0; i < 3; i++) {
        const { runId } = (await sam.post('/agent/runs', { agentKey: 'importer', goal: 'Import accounts.' })).body;
        const inRun: CallOptions = { headers: { 'x-agent-run-id': runId } };
        const body = { operation: 'create', objectApiName: 'Account', format: 'csv' };
        const { jobId } = (await sam.post('/bulk/jobs', body, inRun)).body;
        assert.equal((await upload(sam, jobId, 1, `name\nRun ${randomUUID()}\n`, inRun)).status, 201);
        assert.equal((await sam.post(`/bulk/jobs/${jobId}/start`, undefined, inRun)).status, 202);
        jobs.push({ runId, jobId });
      }
      const [canceled, expired, completed] = jobs.map(({ runId }) => runId);
      assert.equal((await sam.post(`/agent/runs/${canceled}/cancel`)).status, 201);
      await client.query("UPDATE agent.runs SET status = 'EXPIRED', ended_at = now() WHERE run_id = $1", [expired]);
      assert.equal(
        (await sam.post(`/agent/runs/${completed}/complete`, { outcome: 'succeeded', summary: 'Done.' })).status,
        201,
      );
    });
    const states = await Promise.all(jobs.map(async ({ jobId }) => (await ended(sam, jobId)).state));
    assert.deepEqual(states, ['CANCELED', 'CANCELED', 'COMPLETED']);
  });
});
