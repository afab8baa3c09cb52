/** Requests that wait for approval: their visibility, their decision and their outcome. */
import assert from 'node:assert/strict';
import type { Admission } from '../../../contracts/agent.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { Database } from '../../../mixins/database/database.ts';
import { aDeletion, admit, contextOf } from '../../support/agents.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const GOAL = { agentKey: 'dunning', goal: 'Remind customers of overdue invoices.' };

describe('approvals over HTTP', function () {
  this.timeout(120_000);
  let platform: TestPlatform;
  let database: Database;
  let sam: Api;
  let mia: Api;
  let ada: Api;
  let sue: Api;
  let fay: Api;
  let samContext: RequestContext;
  let invoice: string;
  before(async () => {
    platform = await startPlatform();
    const as = async (name: string): Promise<Api> => api(platform.baseUrl, await tokenFor(platform.baseUrl, name));
    [sam, mia, ada, sue, fay] = [await as('sam'), await as('mia'), await as('ada'), await as('sue'), await as('fay')];
    samContext = await contextOf(sam);
    database = new Database(platform.database.url, { size: 2, applicationName: 'approvals test' });
    invoice = (await ada.get('/data/Invoice__c?take=1')).body.records[0].id;
  });
  after(async () => {
    await database?.close();
    await platform?.stop();
  });

  const aRun = async (): Promise<string> => (await sam.post('/agent/runs', GOAL)).body.runId;
  const refusal = (answer: Promise<unknown>): Promise<PlatformError> =>
    answer.then(
      () => assert.fail('it was admitted'),
      (error: unknown) => {
        assert.ok(error instanceof PlatformError, String(error));
        return error;
      },
    );
  /** A waiting deletion: the request and its approval. */
  const ask = async (
    more: Partial<Admission> & { id?: string } = {},
  ): Promise<{ admission: Admission; approvalId: string; fingerprint: string }> => {
    const admission = aDeletion(await aRun(), { id: invoice, ...more });
    const { code, details } = await refusal(admit(platform, samContext, admission));
    assert.equal(code, 'APPROVAL_REQUIRED');
    return { admission, approvalId: String(details?.['approvalId']), fingerprint: String(details?.['fingerprint']) };
  };
  const decide = (who: Api, approvalId: string, body: object): Promise<Answer> =>
    who.post(`/agent/approvals/${approvalId}/decision`, body);
  const approve = (who: Api, { approvalId, fingerprint }: { approvalId: string; fingerprint: string }) =>
    decide(who, approvalId, { decision: 'approve', fingerprint });
  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body.code], [status, code], reply.text);

  it('is requested once, and the run waits', async () => {
    const { admission, approvalId, fingerprint } = await ask();
    const again = await refusal(admit(platform, samContext, admission));
    assert.equal(again.code, 'APPROVAL_PENDING');
    assert.deepEqual([again.details?.['approvalId'], again.details?.['fingerprint']], [approvalId, fingerprint]);
    const run = (await sam.get(`/agent/runs/${admission.runId}`)).body;
    assert.equal(run.status, 'WAITING_APPROVAL');
    assert.deepEqual(
      run.pendingApprovals.map((one: { approvalId: string }) => one.approvalId),
      [approvalId],
    );
    assert.deepEqual(run.usage, { cost: 0, requests: 2, mutations: 0, recordsChanged: 0 });
    const steps = (await sam.get(`/agent/runs/${admission.runId}/steps`)).body.records;
    assert.deepEqual(
      steps.map((step: Record<string, unknown>) => [step['operationId'], step['status'], step['approvalId']]),
      Array(2).fill(['data.records.delete', 403, approvalId]),
      'the repetition is a step as well',
    );
  });

  it('is decided by another user, and then admits the identical request', async () => {
    const asked = await ask();
    const mayNot = await approve(sam, asked);
    refused(mayNot, 403, 'OBJECT_PERMISSION_DENIED');
    assert.deepEqual(mayNot.body.details, {
      objectApiName: null,
      operation: null,
      layer: 'objectPermission',
      permission: 'approveAgentActions',
    });
    const decided = await approve(ada, asked);
    assert.equal(decided.status, 201, decided.text);
    assert.equal(decided.body.status, 'APPROVED');
    assert.equal(decided.body.decisions.length, 1);
    assert.equal((await sam.get(`/agent/runs/${asked.admission.runId}`)).body.status, 'RUNNING');
    const admitted = await admit(platform, samContext, asked.admission);
    assert.equal(admitted.approvalId, asked.approvalId);
    refused(await approve(mia, asked), 403, 'OBJECT_PERMISSION_DENIED');
  });

  it('is refused to users who lack permission for the operation itself', async () => {
    const asked = await ask();
    // A sales manager may approve actions of agents, and may not delete invoices.
    const answer = await approve(mia, asked);
    refused(answer, 403, 'OBJECT_PERMISSION_DENIED');
    refused(await approve(sue, asked), 403, 'OBJECT_PERMISSION_DENIED');
    refused(await approve(fay, asked), 403, 'OBJECT_PERMISSION_DENIED');
    assert.equal((await ada.get(`/agent/approvals/${asked.approvalId}`)).body.status, 'PENDING');
  });

  it('requires a comment on a rejection, which stays in force', async () => {
    const { records } = (await ada.get('/data/Invoice__c?take=2')).body;
    const asked = await ask({ id: records[1].id });
    const { approvalId, fingerprint } = asked;
    const bare = await decide(ada, approvalId, { decision: 'reject', fingerprint });
    refused(bare, 400, 'PARAMETER_REQUIRED');
    assert.equal(bare.body.errors[0].pointer, '/comment');
    const rejected = await decide(ada, approvalId, { decision: 'reject', fingerprint, comment: 'Still open.' });
    assert.equal(rejected.body.status, 'REJECTED', rejected.text);
    const again = await refusal(admit(platform, samContext, { ...asked.admission, idempotencyKey: 'another-key' }));
    assert.equal(again.code, 'APPROVAL_REJECTED');
    assert.equal(again.details?.['comment'], 'Still open.');
    const steps = (await sam.get(`/agent/runs/${asked.admission.runId}/steps`)).body.records;
    assert.deepEqual(
      steps.map((step: Record<string, unknown>) => [step['status'], step['approvalId']]),
      Array(2).fill([403, approvalId]),
    );
  });

  it('is bound to the request body: another fingerprint is refused', async () => {
    const asked = await ask();
    refused(
      await approve(ada, { ...asked, fingerprint: `sha256:${'0'.repeat(64)}` }),
      409,
      'APPROVAL_FINGERPRINT_MISMATCH',
    );
    assert.equal((await approve(ada, asked)).status, 201);
    refused(await approve(ada, asked), 409, 'APPROVAL_ALREADY_DECIDED');
  });

  it('is decided once when two users decide at the same moment', async () => {
    // A rejection holds for a day, so this one is about an invoice of its own.
    const other = (await ada.get('/data/Invoice__c?take=9')).body.records[8].id;
    const asked = await ask({ id: other });
    const { approvalId, fingerprint } = asked;
    const answers = await Promise.all([
      approve(ada, asked),
      decide(ada, approvalId, { decision: 'reject', fingerprint, comment: 'No.' }),
    ]);
    const codes = answers.map(({ status, body }) => (status === 201 ? 'decided' : body.code)).sort();
    assert.deepEqual(codes, ['APPROVAL_ALREADY_DECIDED', 'decided']);
  });

  it('is not found by users whom it does not concern', async () => {
    const { approvalId } = await ask();
    assert.equal((await sam.get(`/agent/approvals/${approvalId}`)).status, 200, 'in their own name');
    for (const [who, path] of [
      [sue, approvalId],
      [ada, uuidv7()],
    ] as const)
      refused(await who.get(`/agent/approvals/${path}`), 404, 'APPROVAL_NOT_FOUND');
    refused(await ada.get('/agent/approvals/nonsense'), 400, 'PARAMETER_INVALID');
    assert.equal((await sam.get(`/agent/approvals/${approvalId.toUpperCase()}`)).status, 200, 'in either case');
    const listed = (await ada.get('/agent/approvals?status=PENDING&take=200')).body.records;
    assert.ok(listed.some((one: { approvalId: string }) => one.approvalId === approvalId));
    const sueLists = (await sue.get('/agent/approvals')).body.records;
    assert.deepEqual(sueLists, []);
  });

  it('can be neither decided nor read when it is unknown who could execute it', async () => {
    const path = '/api/v1/secrets/of-sam';
    const asked = await ask({
      operationId: 'secrets.open',
      path,
      pathParameters: { secret: 'of-sam' },
      body: { a: 1 },
    });
    refused(await approve(ada, asked), 403, 'RECORD_ACCESS_DENIED');
    const { body, text } = await ada.get(`/agent/approvals/${asked.approvalId}`);
    assert.deepEqual([body.operationId, body.risk, body.path], ['secrets.open', 'high', '[hidden]']);
    assert.equal(body.request.body, '[hidden]');
    assert.ok(!text.includes('of-sam'), text);
  });

  it('ends with its run', async () => {
    const asked = await ask();
    await sam.post(`/agent/runs/${asked.admission.runId}/complete`, { outcome: 'failed', summary: 'Nobody answered.' });
    const { status } = (await ada.get(`/agent/approvals/${asked.approvalId}`)).body;
    assert.equal(status, 'CANCELED');
    const late = await approve(ada, asked);
    refused(late, 409, 'APPROVAL_ALREADY_DECIDED');
    assert.deepEqual(late.body.details, { status: 'CANCELED' });
    assert.equal((await refusal(admit(platform, samContext, asked.admission))).code, 'RUN_NOT_ACTIVE');
  });
});
