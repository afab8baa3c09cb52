/** Approvals of composite requests: one decision about all parts, each shown and checked as if it had come alone. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Answer, Api } from '../../support/client.ts';
import { type Deals, startDeals } from '../data/deals.ts';

const POLICY = 'agentPolicies/Deals.yaml';
const rules = (...list: object[]): Record<string, string> => ({
  [POLICY]: JSON.stringify({ type: 'AgentPolicy', apiName: 'Deals', appliesTo: { clients: ['*'] }, rules: list }),
});
const APPROVERS = 'type: PermissionSet\napiName: Approvers\nlabel: Approvers\nsystem: [approveAgentActions]\n';
const UPDATES = { operationIds: ['data.records.update'], decision: 'approve' };

describe('approvals of composite requests', function () {
  this.timeout(180_000);
  let deals: Deals;
  let ada: Api;
  let mia: Api;
  let sam: Api;
  let sue: Api;
  before(async () => {
    deals = await startDeals();
    ({ ada, mia, sam, sue } = deals.as);
    await deals.deploy({ ...rules(UPDATES), 'permissionSets/Approvers.yaml': APPROVERS });
    await deals.setUser('sue', { permissionSetApiNames: ['Deals', 'Approvers'] });
  });
  after(() => deals?.platform.stop());

  interface Sent {
    readonly first: Answer;
    again(): Promise<Answer>;
  }
  /** A request under a run of its own, and how it is sent again. */
  const send = async (path: string, body: object): Promise<Sent> => {
    const { runId } = (
      await sam.post('/agent/runs', { agentKey: 'tester', goal: 'Tidy deals.', budget: { maxMutations: 50 } })
    ).body;
    const options = { headers: { 'x-agent-run-id': runId }, idempotencyKey: randomUUID() };
    const again = (): Promise<Answer> => sam.post(path, body, options);
    return { first: await again(), again };
  };
  const composite = (requests: readonly object[], more: object = {}): Promise<Sent> =>
    send('/composite', { requests, ...more });
  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body?.code], [status, code], reply.text);
  const approve = (who: Api, { first }: Sent): Promise<Answer> => {
    refused(first, 403, 'APPROVAL_REQUIRED');
    const { approvalId, fingerprint } = first.body.details;
    return who.post(`/agent/approvals/${approvalId}/decision`, { decision: 'approve', fingerprint });
  };
  const read = (who: Api, { first }: Sent): Promise<Answer> =>
    who.get(`/agent/approvals/${first.body.details.approvalId}`);
  /** A deal of Sam, which Mia sees and Sue does not. */
  const aDeal = async (): Promise<{ id: string; etag: string; name: string }> => {
    const name = `Deal ${randomUUID()}`;
    const { body, headers } = await deals.deal(sam, { name });
    return { id: body.id, etag: headers.get('etag') ?? '', name };
  };
  const change = (deal: { id: string; etag: string }, fields: object, referenceId = 'change'): object => ({
    referenceId,
    method: 'PATCH',
    path: `/data/Deal__c/${deal.id}`,
    headers: { ifMatch: deal.etag },
    body: fields,
  });
  const creation = { referenceId: 'made', method: 'POST', path: '/data/Deal__c', body: { name: 'Made' } };
  const line = {
    referenceId: 'line',
    method: 'POST',
    path: '/data/DealLine__c',
    body: { name: 'L', Deal__c: '@{made.id}' },
  };

  it('are one decision, which shows each part before and after', async () => {
    const deal = await aDeal();
    const sent = await composite([creation, line, change(deal, { Stage__c: 'won' })]);
    refused(await sent.again(), 403, 'APPROVAL_PENDING');
    const { body: shown, text } = await read(mia, sent);
    assert.equal(shown.summary, '3 changes in one request', text);
    assert.deepEqual(
      shown.request.body.requests.map((one: Record<string, unknown>) => [
        one['referenceId'],
        one['method'],
        one['path'],
        one['body'],
      ]),
      [
        ['made', 'POST', '/api/v1/data/Deal__c', { name: 'Made' }],
        ['line', 'POST', '/api/v1/data/DealLine__c', { name: 'L', Deal__c: '@{made.id}' }],
        ['change', 'PATCH', `/api/v1/data/Deal__c/${deal.id}`, { Stage__c: 'won' }],
      ],
    );
    const [made, , changed] = shown.preview.parts;
    assert.deepEqual([made.status, made.before, made.record.name], [201, null, 'Made']);
    assert.deepEqual([changed.before.Stage__c, changed.record.Stage__c], [null, 'won']);
    assert.ok(!text.includes('Secret__c'), 'a field that she cannot read');
    assert.deepEqual(
      shown.preview.effects
        .filter(({ kind }: { kind: string }) => kind !== 'event')
        .map(({ kind, objectApiName }: Record<string, string>) => [kind, objectApiName]),
      [
        ['create', 'Deal__c'],
        ['create', 'DealLine__c'],
        ['update', 'Deal__c'],
      ],
    );
    assert.equal((await approve(mia, sent)).body.status, 'APPROVED');
    const done = await sent.again();
    assert.deepEqual([done.status, done.body.committed], [200, true], done.text);
    assert.equal((await sam.get(`/data/Deal__c/${deal.id}`)).body.Stage__c, 'won');
    assert.equal((await read(mia, sent)).body.status, 'CONSUMED');
    assert.equal((await sent.again()).text, done.text, 'the same key has the same outcome');
  });

  it('are for people who could make every change themselves, also where a reference names the record', async () => {
    const deal = await aDeal();
    const found = {
      referenceId: 'found',
      method: 'GET',
      path: '/data/Deal__c',
      query: {
        filters: { logic: 'and', conditions: [{ id: 'c', field: 'name', operator: 'eq', value: deal.name }] },
      },
    };
    const byReference = { ...change(deal, { Stage__c: 'lost' }), path: '/data/Deal__c/@{found.records.0.id}' };
    for (const requests of [
      [creation, change(deal, { Stage__c: 'lost' })],
      [found, byReference],
    ]) {
      const sent = await composite(requests);
      refused(await approve(sue, sent), 404, 'RECORD_NOT_FOUND');
      const { body, text } = await read(sue, sent);
      assert.equal(body.request.body, '[hidden]', text);
      assert.ok(!text.includes(deal.id) && !text.includes(deal.name), text);
      assert.equal((await approve(mia, sent)).body.status, 'APPROVED');
    }
  });

  it('do not show what the parts read', async () => {
    const deal = await aDeal();
    const looked = {
      referenceId: 'looked',
      method: 'GET',
      path: '/data/Account',
      query: { take: '1', search: 'Nordwind' },
    };
    const sent = await composite([looked, change(deal, { Stage__c: 'open' })]);
    const { body, text } = await read(mia, sent);
    assert.deepEqual(body.preview.parts[0], { referenceId: 'looked', status: 200 }, text);
    assert.equal(body.request.body.requests[0].query, '[hidden]');
  });

  it('are good for the effects that were shown', async () => {
    const [deal, other] = [await aDeal(), await aDeal()];
    const source = { referenceId: 'source', method: 'GET', path: `/data/Deal__c/${other.id}` };
    const sent = await composite([source, change(deal, { Stage__c: '@{source.name}' })]);
    assert.equal((await approve(mia, sent)).body.status, 'APPROVED');
    const renamed = await sam.patch(`/data/Deal__c/${other.id}`, { name: 'Another' }, { etag: other.etag });
    assert.equal(renamed.status, 200, renamed.text);
    refused(await sent.again(), 409, 'APPROVAL_STALE');
    assert.equal((await sam.get(`/data/Deal__c/${deal.id}`)).headers.get('etag'), deal.etag);
    refused(await sent.again(), 403, 'APPROVAL_REQUIRED');
  });

  it('are not asked for when a part would fail', async () => {
    const deal = await aDeal();
    const { first } = await composite([change(deal, { Stage__c: 'x' }), { ...creation, body: { name: 7 } }]);
    refused(first, 422, 'COMPOSITE_FAILED');
    assert.deepEqual(
      first.body.details.results.map(({ status, body }: { status: number; body: { code: string } }) => [
        status,
        body.code,
      ]),
      [
        [422, 'ROLLED_BACK'],
        [422, 'VALIDATION_FAILED'],
      ],
    );
  });

  it('are refused where one decision cannot be for all', async () => {
    const made = await Promise.all(Array.from({ length: 26 }, aDeal));
    const changes = made.map((deal, at) => change(deal, { Stage__c: 'x' }, `c${at}`));
    refused((await composite(changes)).first, 403, 'AGENT_POLICY_DENIED');
    refused((await composite(changes.slice(0, 2), { allOrNone: false })).first, 403, 'AGENT_POLICY_DENIED');
    const two = { operationIds: ['data.records.delete'], decision: 'approve', requiredApprovals: 2 };
    await deals.deploy(rules(UPDATES, two));
    const deletion = { ...change(made[1]!, {}), referenceId: 'gone', method: 'DELETE', body: undefined };
    refused((await composite([change(made[0]!, { Stage__c: 'x' }), deletion])).first, 403, 'AGENT_POLICY_DENIED');
    await deals.deploy(rules(UPDATES));
  });

  it('show rows with their records, and store all of them', async () => {
    const made = [await aDeal(), await aDeal()];
    const body = {
      objectApiName: 'Deal__c',
      operation: 'update',
      records: made.map(({ id, etag }) => ({ id, ifMatch: etag, fields: { Stage__c: 'rows' } })),
    };
    const sent = await send('/composite/records', body);
    const { body: shown, text } = await read(mia, sent);
    assert.deepEqual(
      shown.request.body.records.map(({ id, fields }: Record<string, unknown>) => [id, fields]),
      made.map(({ id }) => [id, { Stage__c: 'rows' }]),
      text,
    );
    assert.deepEqual(
      shown.preview.parts.map(({ before, record }: Record<string, Record<string, unknown>>) => [
        before?.['Stage__c'],
        record?.['Stage__c'],
      ]),
      made.map(() => [null, 'rows']),
    );
    refused(await approve(sue, sent), 404, 'RECORD_NOT_FOUND');
    assert.equal((await approve(mia, sent)).body.status, 'APPROVED');
    const done = await sent.again();
    assert.deepEqual([done.status, done.body.committed], [200, true], done.text);
    for (const { id } of made) assert.equal((await ada.get(`/data/Deal__c/${id}`)).body.Stage__c, 'rows');
  });
});
