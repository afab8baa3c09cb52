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
      assert.deepEqual((await read(mia, sent)).body.preview.parts[1].before?.name, deal.name);
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

  it('do not show what the parts ask for to read', async () => {
    const looked = {
      referenceId: 'looked',
      method: 'POST',
      path: '/data/Account/query',
      body: { take: 1, search: 'Nordwind' },
    };
    const asked = await composite([looked, change(await aDeal(), { Stage__c: 'open' })]);
    const { body, text } = await read(mia, asked);
    assert.deepEqual(
      body.request.body.requests.map((one: Record<string, unknown>) => one['body']),
      ['[hidden]', { Stage__c: 'open' }],
      text,
    );
    assert.ok(!text.includes('Nordwind'), text);
  });

  it('are not asked for again when a change was rejected, in whatever request it comes', async () => {
    const deal = await aDeal();
    const body = { Stage__c: 'never' };
    const first = await composite([change(deal, body)]);
    refused(first.first, 403, 'APPROVAL_REQUIRED');
    const { approvalId, fingerprint } = first.first.body.details;
    const decision = { decision: 'reject', fingerprint, comment: 'No.' };
    assert.equal((await mia.post(`/agent/approvals/${approvalId}/decision`, decision)).status, 201);
    const looked = { referenceId: 'looked', method: 'GET', path: '/objects' };
    const row = { id: deal.id, ifMatch: deal.etag, fields: body };
    for (const { first: again } of [
      await composite([looked, change(deal, body, 'other')]),
      await send('/composite/records', { objectApiName: 'Deal__c', operation: 'update', records: [row] }),
    ])
      refused(again, 403, 'APPROVAL_REJECTED');
    const { runId } = (await sam.post('/agent/runs', { agentKey: 'tester', goal: 'Alone.' })).body;
    const alone = { etag: deal.etag, headers: { 'x-agent-run-id': runId } };
    refused(await sam.patch(`/data/Deal__c/${deal.id}`, body, alone), 403, 'APPROVAL_REJECTED');
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

  it('are not asked for when nothing would be stored', async () => {
    const deal = await aDeal();
    const { first } = await composite([change(deal, { Stage__c: 'tried' })], { checkOnly: true });
    assert.deepEqual([first.status, first.body?.committed], [200, false], first.text);
    assert.equal((await sam.get(`/data/Deal__c/${deal.id}`)).headers.get('etag'), deal.etag);
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

  it('cannot be walked around by a row that clears what another one sets', async () => {
    const deal = await aDeal();
    await deals.deploy(rules({ objects: ['Deal__c'], decision: 'deny' }));
    const rows = (...values: (string | null)[]): object => ({
      objectApiName: 'DealLine__c',
      operation: 'create',
      allOrNone: false,
      records: values.map((Deal__c) => ({ fields: { name: 'L', Deal__c } })),
    });
    for (const values of [[deal.id], [deal.id, null], [null, deal.id]])
      refused((await send('/composite/records', rows(...values))).first, 403, 'AGENT_POLICY_DENIED');
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
