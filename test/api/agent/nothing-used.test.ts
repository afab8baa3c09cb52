/** A change under a run that writes nothing uses up neither its approval nor the budget of the run. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Answer, Api, CallOptions } from '../../support/client.ts';
import { fieldFile } from '../../support/metadata-tenant.ts';
import { type Deals, startDeals } from '../data/deals.ts';

/** Contacts, and creations or changes by a number, wait for approval; deals and their lines do not. */
const FILES = {
  ...fieldFile('Deal__c', 'Number__c', 'fieldType: text\nlength: 40\nexternalId: true\nunique: true'),
  'permissionSets/Numbers.yaml': [
    'type: PermissionSet',
    'apiName: Numbers',
    'label: Numbers',
    'fields:',
    '  Deal__c.Number__c:',
    '    read: true',
    '    edit: true',
    '',
  ].join('\n'),
  'agentPolicies/Contacts.yaml': [
    'type: AgentPolicy',
    'apiName: Contacts',
    'appliesTo:',
    '  clients:',
    '    - "*"',
    'rules:',
    '  - operationIds:',
    '      - data.records.create',
    '    objects:',
    '      - Contact',
    '    decision: approve',
    '  - operationIds:',
    '      - data.records.upsert',
    '    decision: approve',
    '  - operationIds:',
    '      - data.shares.create',
    '    decision: allow',
    '',
  ].join('\n'),
};

describe('a change under a run that writes nothing', () => {
  let deals: Deals;
  let sam: Api;
  let mia: Api;
  before(async function () {
    this.timeout(180_000);
    deals = await startDeals();
    ({ sam, mia } = deals.as);
    await deals.deploy(FILES);
    for (const name of ['mia', 'sam'] as const)
      await deals.setUser(name, { permissionSetApiNames: ['Deals', 'Numbers'] });
  });
  after(() => deals?.platform.stop());

  const begin = async (budget: object = {}): Promise<string> => {
    const reply = await sam.post('/agent/runs', { agentKey: 'tester', goal: 'Enter deals.', budget });
    assert.equal(reply.status, 201, reply.text);
    return reply.body.runId;
  };
  const under = (runId: string, more: CallOptions = {}): CallOptions => ({
    ...more,
    headers: { ...more.headers, 'x-agent-run-id': runId },
  });
  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body?.code], [status, code], reply.text);
  const approve = async (reply: Answer): Promise<void> => {
    refused(reply, 403, 'APPROVAL_REQUIRED');
    const { approvalId, fingerprint } = reply.body.details;
    const decided = await mia.post(`/agent/approvals/${approvalId}/decision`, { decision: 'approve', fingerprint });
    assert.deepEqual([decided.status, decided.body.status], [201, 'APPROVED'], decided.text);
  };
  const statusOf = async (asked: Answer): Promise<string> =>
    (await mia.get(`/agent/approvals/${asked.body.details.approvalId}`)).body.status;
  const changed = async (runId: string): Promise<number> =>
    (await sam.get(`/agent/runs/${runId}`)).body.usage.recordsChanged;
  const count = async (name: string): Promise<number> => {
    const found = await sam.post('/data/Deal__c/query', { where: { name } }, { idempotencyKey: null });
    assert.equal(found.status, 200, found.text);
    return found.body.records.length;
  };
  let deployed = 0;
  /** Makes the configuration and the deciders differ from those that any process has cached. */
  const reconfigure = async (): Promise<void> => {
    const group = `Later${++deployed}`;
    await deals.deploy({ [`groups/${group}.yaml`]: `type: Group\napiName: ${group}\nlabel: ${group}\n` });
  };

  it('is executed with the same approval after a change of configuration prevented it', async () => {
    const runId = await begin();
    const name = `Ng ${randomUUID()}`;
    const create = () => sam.post('/data/Contact', { name }, under(runId));
    const asked = await create();
    await approve(asked);
    await reconfigure();
    const done = await create();
    assert.equal(done.status, 201, done.text);
    assert.equal(await statusOf(asked), 'CONSUMED');
    assert.equal(await changed(runId), 1);
  });

  it('leaves the approval unused when a referenced record is gone', async () => {
    const runId = await begin();
    const account = await sam.post('/data/Account', { name: `Globex ${randomUUID()}` });
    assert.equal(account.status, 201, account.text);
    const contact = { name: 'Ng', accountId: account.body.id };
    const create = () => sam.post('/data/Contact', contact, under(runId));
    const asked = await create();
    await approve(asked);
    const { ada } = deals.as;
    const removed = await ada.delete(`/data/Account/${account.body.id}`, { etag: account.headers.get('etag')! });
    assert.equal(removed.status, 200, removed.text);
    refused(await create(), 422, 'VALIDATION_FAILED');
    assert.equal(await statusOf(asked), 'APPROVED');
    assert.equal(await changed(runId), 0);
    const restored = await ada.post(`/data/Account/${account.body.id}/restore`);
    assert.equal(restored.status, 201, restored.text);
    assert.equal((await create()).status, 201);
    assert.equal(await changed(runId), 1);
  });

  it('leaves its budget to other requests', async () => {
    const runId = await begin({ maxRecords: 2 });
    const line = (id: string) => sam.post('/data/DealLine__c', { name: 'Line', Deal__c: id }, under(runId));
    for (let i = 0; i < 3; i++) refused(await line(randomUUID()), 422, 'VALIDATION_FAILED');
    assert.equal(await changed(runId), 0);
    const deal = await deals.deal();
    for (let i = 0; i < 2; i++) assert.equal((await line(deal.body.id)).status, 201);
    refused(await line(deal.body.id), 403, 'AGENT_BUDGET_EXCEEDED');
  });

  it('counts once when its key was already used, however many requests come at once', async () => {
    const runId = await begin();
    const name = `Deal ${randomUUID()}`;
    const options = under(runId, { idempotencyKey: randomUUID() });
    const replies = await Promise.all(Array.from({ length: 8 }, () => sam.post('/data/Deal__c', { name }, options)));
    for (const reply of replies) assert.deepEqual([reply.status, reply.text], [201, replies[0]?.text]);
    assert.equal(await count(name), 1);
    assert.equal(await changed(runId), 1);
  });

  it('leaves the whole budget to simultaneous requests after a deployment', async () => {
    const runId = await begin({ maxRecords: 2 });
    const name = `Deal ${randomUUID()}`;
    await reconfigure();
    const replies = await Promise.all(
      Array.from({ length: 6 }, () => sam.post('/data/Deal__c', { name }, under(runId))),
    );
    assert.equal(replies.filter(({ status }) => status === 201).length, 2);
    for (const reply of replies.filter(({ status }) => status !== 201)) refused(reply, 403, 'AGENT_BUDGET_EXCEEDED');
    assert.equal(await count(name), 2);
    assert.equal(await changed(runId), 2);
  });

  it('costs nothing, whatever it would have changed', async () => {
    const runId = await begin();
    const deal = await deals.deal();
    const etag = deal.headers.get('etag')!;
    const path = `/data/Deal__c/${deal.body.id}`;
    const other = await deals.deal(sam, { Number__c: `N-${randomUUID()}` });
    await reconfigure();
    const taken = { Number__c: other.body.Number__c };
    refused(await sam.patch(path, taken, under(runId, { etag })), 409, 'UNIQUE_VALUE_CONFLICT');
    refused(await sam.patch(path, { name: 'X' }, under(runId, { etag: '"zz"' })), 412, 'ETAG_MISMATCH');
    refused(await sam.post(`${path}/restore`, undefined, under(runId)), 404, 'RECORD_NOT_FOUND');
    const nobody = { principalType: 'user', principalId: randomUUID(), access: 'read' };
    refused(await sam.post(`${path}/shares`, nobody, under(runId)), 422, 'VALIDATION_FAILED');
    assert.equal(await changed(runId), 0);
  });

  describe('after another change to the record with its external id', () => {
    const number = (): string => `N-${randomUUID()}`;
    const upsert = (runId: string, id: string, name: string, idempotencyKey: string = randomUUID()) =>
      sam.put(`/data/Deal__c/by/Number__c/${id}`, { name }, under(runId, { idempotencyKey }));
    const nameOf = async (id: string): Promise<string> => (await sam.get(`/data/Deal__c/${id}`)).body.name;

    it('requests approval again when the record was created meanwhile', async () => {
      const [runId, id, key] = [await begin(), number(), randomUUID()];
      const asked = await upsert(runId, id, 'of the agent', key);
      await approve(asked);
      const made = await deals.deal(sam, { name: 'of a person', Number__c: id });
      const replies = await Promise.all(Array.from({ length: 8 }, () => upsert(runId, id, 'of the agent', key)));
      assert.equal(await nameOf(made.body.id), 'of a person');
      assert.equal(await statusOf(asked), 'CANCELED');
      for (const reply of replies) assert.ok([403, 409].includes(reply.status), reply.text);
      assert.ok(replies.some(({ body }) => body.code === 'APPROVAL_STALE'));
      const asksAnew = replies.filter(({ body }) => body.code === 'APPROVAL_REQUIRED');
      assert.ok(asksAnew.length <= 1);
      const pending = (await upsert(runId, id, 'of the agent', key)).body;
      assert.match(pending.code, /^APPROVAL_(PENDING|REQUIRED)$/);
      const { approvalId } = pending.details;
      const { fingerprint } = asked.body.details;
      const again = asksAnew[0] ?? {
        ...asked,
        body: { code: 'APPROVAL_REQUIRED', details: { approvalId, fingerprint } },
      };
      assert.notEqual(again.body.details.approvalId, asked.body.details.approvalId);
      const { preview } = (await mia.get(`/agent/approvals/${again.body.details.approvalId}`)).body;
      assert.deepEqual([preview.effects[0].kind, preview.effects[0].id], ['update', made.body.id]);
      assert.equal(await changed(runId), 0);
      await approve(again);
      const done = await upsert(runId, id, 'of the agent', key);
      assert.equal(done.status, 200, done.text);
      assert.equal(await nameOf(made.body.id), 'of the agent');
      const replayed = await upsert(runId, id, 'of the agent', key);
      assert.deepEqual([replayed.status, replayed.text], [200, done.text]);
      assert.equal(await changed(runId), 1);
    });

    it('requests approval again when the record was changed meanwhile', async () => {
      const [runId, id] = [await begin(), number()];
      const made = await deals.deal(sam, { name: 'of a person', Number__c: id });
      const asked = await upsert(runId, id, 'of the agent');
      await approve(asked);
      const etag = made.headers.get('etag')!;
      const changedBySam = await sam.patch(`/data/Deal__c/${made.body.id}`, { name: 'changed' }, { etag });
      assert.equal(changedBySam.status, 200, changedBySam.text);
      const stale = await upsert(runId, id, 'of the agent');
      refused(stale, 409, 'APPROVAL_STALE');
      assert.deepEqual(stale.body.details.changed, ['record']);
      const again = await upsert(runId, id, 'of the agent');
      refused(again, 403, 'APPROVAL_REQUIRED');
      assert.notEqual(again.body.details.approvalId, asked.body.details.approvalId);
      assert.equal(await nameOf(made.body.id), 'changed');
    });

    it('creates the record or leaves the one that another request creates at the same moment', async function () {
      this.timeout(120_000);
      for (let round = 0; round < 12; round++) {
        const [runId, id] = [await begin(), number()];
        await approve(await upsert(runId, id, 'of the agent'));
        const [ofAgent, ofPerson] = await Promise.all([
          upsert(runId, id, 'of the agent'),
          sam.post('/data/Deal__c', { name: 'of a person', Number__c: id }),
        ]);
        if (ofAgent.status === 201) refused(ofPerson, 409, 'UNIQUE_VALUE_CONFLICT');
        else {
          refused(ofAgent, 409, 'APPROVAL_STALE');
          assert.equal(await nameOf(ofPerson.body.id), 'of a person');
        }
      }
    });
  });
});
