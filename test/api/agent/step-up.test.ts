/** Approving requires the same sign-in as executing. Source: docs/reference/agents.md#approvals. */
import assert from 'node:assert/strict';
import { fieldFile, wholePackage } from '../../support/metadata-tenant.ts';
import { type Deals, startDeals } from '../data/deals.ts';

describe('approving a deployment of an agent', function () {
  this.timeout(180_000);
  let deals: Deals;
  before(async () => {
    deals = await startDeals();
    await deals.setUser('mia', { profileApiName: 'Administrator' });
  });
  after(() => deals?.platform.stop());

  it('requires a recent two-factor sign-in where the tenant configures it; rejecting does not', async () => {
    const { ada, mia } = deals.as;
    const { runId } = (await ada.post('/agent/runs', { agentKey: 'tester', goal: 'Add a field.' })).body;
    const files = fieldFile('Deal__c', 'More__c', 'fieldType: text\nlength: 40');
    const asked = await ada.post(
      '/metadata/deploy',
      { files, package: wholePackage(files) },
      { headers: { 'x-agent-run-id': runId } },
    );
    assert.equal(asked.body.code, 'APPROVAL_REQUIRED', asked.text);
    const { approvalId, fingerprint } = asked.body.details;
    const path = 'settings/General.yaml';
    const general = await ada.post('/metadata/retrieve', {
      package: { version: 1, types: [{ name: 'TenantSettings', members: ['General'] }] },
    });
    const text = String(general.body.files[path]).replace(/^secondFactor:.*\n/m, '');
    await deals.deploy({ [path]: `${text}secondFactor: everyone\n` });
    const decide = (decision: string, of = fingerprint) =>
      mia.post(`/agent/approvals/${approvalId}/decision`, { decision, fingerprint: of, comment: 'Not now.' });
    // Until the gateway has the settings, it answers 409 for the other fingerprint.
    let answer = await decide('approve', `sha256:${'0'.repeat(64)}`);
    for (let i = 0; i < 400 && answer.status === 409; i++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      answer = await decide('approve', `sha256:${'0'.repeat(64)}`);
    }
    assert.equal(answer.status, 401, answer.text);
    answer = await decide('approve');
    assert.deepEqual([answer.status, answer.body.code], [401, 'AUTHENTICATION_INSUFFICIENT'], answer.text);
    const challenge = answer.headers.get('www-authenticate');
    assert.match(challenge ?? '', /insufficient_user_authentication.*acr_values=.*resource_metadata="http/);
    const own = await mia.post('/metadata/deploy', { files, package: wholePackage(files) });
    assert.equal(own.headers.get('www-authenticate'), challenge, own.text);
    assert.equal((await decide('reject')).status, 201);
  });
});
