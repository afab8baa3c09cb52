/** Deployments of agents in their short forms: quick deploys and rollbacks. Source: docs/reference/agents.md. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Answer, Api } from '../../support/client.ts';
import { deploymentEnded, fieldFile, wholePackage } from '../../support/metadata-tenant.ts';
import { type Deals, startDeals } from '../data/deals.ts';

describe('approving a quick deploy and a rollback of an agent', function () {
  this.timeout(180_000);
  let deals: Deals;
  let ada: Api;
  let mia: Api;
  let headers: Record<string, string>;
  before(async () => {
    deals = await startDeals();
    ({ ada, mia } = deals.as);
    await deals.setUser('mia', { profileApiName: 'Administrator' });
    const { runId } = (await ada.post('/agent/runs', { agentKey: 'tester', goal: 'Deploy.' })).body;
    headers = { 'x-agent-run-id': runId };
  });
  after(() => deals?.platform.stop());

  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body?.code], [status, code], reply.text);
  const field = (name: string, text: string): Record<string, string> =>
    fieldFile('Deal__c', name, `fieldType: text\nlength: 40\nhelpText: ${text}`);
  const project = (files: Record<string, string>) => ({ files, package: wholePackage(files) });
  const ended = async (reply: Answer): Promise<Answer['body']> => {
    const deployment = await deploymentEnded(ada, reply);
    assert.equal(deployment.status, 'SUCCEEDED', JSON.stringify([deployment.error, deployment.blocked]));
    return deployment;
  };
  const deployed = async (body: object): Promise<Answer['body']> => ended(await ada.post('/metadata/deploy', body));
  /** Sends a deployment under the run, always with the same key. */
  const sender = (body: object): (() => Promise<Answer>) => {
    const idempotencyKey = randomUUID();
    return () => ada.post('/metadata/deploy', body, { headers, idempotencyKey });
  };
  const decide = async (asked: Answer, decision: 'approve' | 'reject'): Promise<Answer['body']> => {
    refused(asked, 403, 'APPROVAL_REQUIRED');
    const { approvalId, fingerprint } = asked.body.details;
    const shown = await mia.get(`/agent/approvals/${approvalId}`);
    assert.equal(shown.status, 200, shown.text);
    const decided = { decision, fingerprint, comment: 'Seen.' };
    const answer = await mia.post(`/agent/approvals/${approvalId}/decision`, decided);
    assert.equal(answer.status, 201, answer.text);
    return shown.body;
  };
  const statusOf = async ({ approvalId }: Answer['body']): Promise<string> =>
    (await mia.get(`/agent/approvals/${approvalId}`)).body.status;
  const planned = (list: readonly { fullName: string }[]): string[] => list.map(({ fullName }) => fullName);
  const present = async (name: string): Promise<boolean> => {
    const types = [{ name: 'CustomField', members: ['Deal__c.*'] }];
    const { files } = (await ada.post('/metadata/retrieve', { package: { version: 1, types } })).body;
    return Object.hasOwn(files, `objects/Deal__c/fields/${name}.yaml`);
  };

  /** Validates a new field; returns the id of the validation. */
  const validated = async (name: string): Promise<string> =>
    (await deployed({ ...project(field(name, 'Validated')), checkOnly: true })).deploymentId;
  /** Deploys a new field; returns the id of the deployment. */
  const added = async (name: string): Promise<string> => (await deployed(project(field(name, 'Added')))).deploymentId;

  it('shows the validated plan, and deploys it once', async () => {
    const validationId = await validated('Quick__c');
    const send = sender({ quickDeploy: { validationId } });
    const shown = await decide(await send(), 'approve');
    assert.deepEqual([planned(shown.preview.creates), shown.preview.blocked], [['Deal__c.Quick__c'], []]);
    assert.equal(shown.preview.validationId, validationId);
    const accepted = await send();
    assert.equal((await ended(accepted)).kind, 'quickDeploy');
    assert.deepEqual([await present('Quick__c'), await statusOf(shown)], [true, 'CONSUMED']);
    assert.deepEqual((await send()).body, accepted.body, 'the key has its outcome');
    refused(await sender({ quickDeploy: { validationId } })(), 409, 'QUICK_DEPLOY_NOT_ELIGIBLE');
  });

  it('shows the deletions of a rollback, and rolls the deployment back once', async () => {
    const deploymentId = await added('Undone__c');
    const send = sender({ rollback: { deploymentId } });
    const shown = await decide(await send(), 'approve');
    assert.deepEqual([planned(shown.preview.deletes), shown.preview.blocked], [['Deal__c.Undone__c'], []]);
    assert.equal(shown.preview.revertsDeploymentId, deploymentId);
    const accepted = await send();
    const { kind, rollback } = await ended(accepted);
    assert.deepEqual([kind, rollback.revertsDeploymentId], ['rollback', deploymentId]);
    assert.deepEqual([await present('Undone__c'), await statusOf(shown)], [false, 'CONSUMED']);
    assert.deepEqual((await send()).body, accepted.body, 'the key has its outcome');
    refused(await sender({ rollback: { deploymentId } })(), 409, 'ROLLBACK_NOT_ELIGIBLE');
  });

  it('requests no approval for a rollback that is only checked', async () => {
    const deploymentId = await added('Checked__c');
    const { kind, checkOnly } = await ended(await sender({ rollback: { deploymentId, checkOnly: true } })());
    assert.deepEqual([kind, checkOnly, await present('Checked__c')], ['rollback', true, true]);
  });

  it('refuses a quick deploy when the configuration has changed since it was approved', async () => {
    const send = sender({ quickDeploy: { validationId: await validated('Moved__c') } });
    const shown = await decide(await send(), 'approve');
    await deployed(project(field('Moved__c', 'Another')));
    const late = await send();
    refused(late, 409, 'QUICK_DEPLOY_NOT_ELIGIBLE');
    assert.equal(late.body.details.reason, 'DRIFT');
    assert.equal(await statusOf(shown), 'APPROVED');
  });

  it('refuses a rollback when what it restores has changed since it was approved', async () => {
    const deploymentId = await added('Kept__c');
    const send = sender({ rollback: { deploymentId } });
    const shown = await decide(await send(), 'approve');
    await deployed(project(field('Kept__c', 'Another')));
    refused(await send(), 409, 'ROLLBACK_NOT_ELIGIBLE');
    assert.deepEqual([await present('Kept__c'), await statusOf(shown)], [true, 'APPROVED']);
  });

  it('keeps a rejected plan rejected in every form', async () => {
    const files = field('Refused__c', 'Validated');
    const validationId = await validated('Refused__c');
    const send = sender({ quickDeploy: { validationId } });
    await decide(await send(), 'reject');
    refused(await send(), 403, 'APPROVAL_REJECTED');
    refused(await sender(project(files))(), 403, 'APPROVAL_REJECTED');
  });

  it('requests no approval for invalid deployments and rollbacks', async () => {
    for (const [form, code] of [
      [{ quickDeploy: { validationId: randomUUID() } }, 'QUICK_DEPLOY_NOT_ELIGIBLE'],
      [{ rollback: { deploymentId: randomUUID() } }, 'ROLLBACK_NOT_ELIGIBLE'],
    ] as const)
      refused(await sender(form)(), 409, code);
  });
});
