/** A rejected request stays rejected for its run in every spelling; an approval covers exact bytes. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Answer, type Api, tokenFor } from '../../support/client.ts';
import { fieldFile } from '../../support/metadata-tenant.ts';
import { type Deals, startDeals } from '../data/deals.ts';

const FILES = {
  ...fieldFile('Deal__c', 'Kind__c', 'fieldType: text\ndefaultValue: usual'),
  ...fieldFile('Deal__c', 'Code__c', 'fieldType: text\nunique: true\nexternalId: true'),
  'agentPolicies/Deals.yaml': JSON.stringify({
    type: 'AgentPolicy',
    apiName: 'Deals',
    appliesTo: { clients: ['*'] },
    rules: [{ operationIds: ['data.*'], decision: 'approve' }],
  }),
};

describe('a rejected request', function () {
  this.timeout(180_000);
  let deals: Deals;
  let ada: Api;
  let sam: Api;
  let mia: Api;
  before(async () => {
    deals = await startDeals();
    ({ ada, sam, mia } = deals.as);
    await deals.deploy(FILES);
    await deals.setUser('mia', { profileApiName: 'Administrator' });
  });
  after(() => deals?.platform.stop());

  const begin = async (who: Api): Promise<string> => {
    const reply = await who.post('/agent/runs', { agentKey: 'tester', goal: 'Tidy deals.' });
    assert.equal(reply.status, 201, reply.text);
    return reply.body.runId;
  };
  /** Sends a request exactly as written: the tests' client writes JSON its own way. */
  const send = async (
    runId: string,
    [method, path, body, ifMatch]: readonly [string, string, (string | undefined)?, string?],
    user = 'ada',
  ): Promise<Answer> => {
    const { baseUrl } = deals.platform;
    const response = await fetch(`${baseUrl}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${await tokenFor(baseUrl, user)}`,
        'idempotency-key': randomUUID(),
        'x-agent-run-id': runId,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
      },
      ...(body === undefined ? {} : { body }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: text === '' ? null : JSON.parse(text) };
  };
  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body?.code], [status, code], reply.text);
  const decide = async (asked: Answer, decision: 'approve' | 'reject'): Promise<void> => {
    refused(asked, 403, 'APPROVAL_REQUIRED');
    const { approvalId, fingerprint } = asked.body.details;
    const body = { decision, fingerprint, ...(decision === 'reject' ? { comment: 'Keep it.' } : {}) };
    const reply = await mia.post(`/agent/approvals/${approvalId}/decision`, body);
    assert.equal(reply.status, 201, reply.text);
  };
  const newDeal = async (): Promise<{ id: string; etag: string }> => {
    const reply = await deals.deal(ada, { name: `Deal ${randomUUID()}` });
    return { id: reply.body.id, etag: reply.headers.get('etag') ?? '' };
  };

  it('stays rejected in every spelling of a path and of If-Match', async () => {
    const { id, etag } = await newDeal();
    const runId = await begin(ada);
    const asked = await send(runId, ['DELETE', `/data/Deal__c/${id}`, undefined, etag]);
    await decide(asked, 'reject');
    const escaped = `%${id.charCodeAt(0).toString(16)}${id.slice(1)}`;
    for (const [path, ifMatch] of [
      [`/data/Deal__c/${id}`, etag],
      [`/data/Deal__c/${id.toUpperCase()}`, etag],
      [`/data/Deal__c/${escaped}`, etag],
      [`/data/Deal%5F%5Fc/${id}`, etag],
      [`/data/Deal%5f%5fc/${id}`, etag],
      [`/data/Deal__c/${id}`, `${etag}, "zz"`],
    ] as const) {
      const again = await send(runId, ['DELETE', path, undefined, ifMatch]);
      refused(again, 403, 'APPROVAL_REJECTED');
      assert.equal(again.body.details.approvalId, asked.body.details.approvalId);
      assert.equal(again.body.details.comment, 'Keep it.');
    }
    assert.equal((await ada.get(`/agent/runs/${runId}`)).body.pendingApprovals.length, 0);
    const other = await newDeal();
    refused(
      await send(runId, ['DELETE', `/data/Deal__c/${other.id}`, undefined, other.etag]),
      403,
      'APPROVAL_REQUIRED',
    );
    const later = await begin(ada);
    refused(await send(later, ['DELETE', `/data/Deal__c/${id}`, undefined, etag]), 403, 'APPROVAL_REJECTED');
  });

  it('stays rejected in every spelling of a body', async () => {
    const runId = await begin(ada);
    const { id } = await newDeal();
    const create = (body: string): Promise<Answer> => send(runId, ['POST', '/data/DealLine__c', body]);
    await decide(await create(`{"name":"Line","Deal__c":"${id}"}`), 'reject');
    for (const body of [
      `{"Deal__c":"${id}","name":"Line"}`,
      ` { "name" : "Line",\n\t"Deal__c":"${id}" } `,
      `{"name":"Lin\\u0065","Deal__c":"${id}"}`,
      `{"name":"Line","Deal__c":"${id.toUpperCase()}"}`,
    ])
      refused(await create(body), 403, 'APPROVAL_REJECTED');
    refused(await create(`{"name":"line","Deal__c":"${id}"}`), 403, 'APPROVAL_REQUIRED');
  });

  it('stays rejected as a creation that states the defaults explicitly', async () => {
    const runId = await begin(ada);
    const create = (body: object): Promise<Answer> => send(runId, ['POST', '/data/Deal__c', JSON.stringify(body)]);
    await decide(await create({ name: 'Deal' }), 'reject');
    for (const more of [{ Kind__c: 'usual' }, { Stage__c: null }, { Kind__c: 'usual', Stage__c: null, Code__c: null }])
      refused(await create({ ...more, name: 'Deal' }), 403, 'APPROVAL_REJECTED');
    for (const more of [{ Kind__c: 'other' }, { Kind__c: null }, { Stage__c: 'open' }])
      refused(await create({ name: 'Deal', ...more }), 403, 'APPROVAL_REQUIRED');
  });

  it('stays rejected in every spelling of a transition', async () => {
    await deals.deploy({
      'objects/Deal__c/actions/note.yaml': JSON.stringify({
        type: 'CustomAction',
        apiName: 'note',
        object: 'Deal__c',
        label: 'Note',
        permission: 'Deal__c.note',
        input: { type: 'object', properties: { stage: { type: 'string' } } },
        effects: [{ verb: 'updateFields', fields: { Stage__c: 'input.stage' } }],
      }),
      'permissionSets/Noting.yaml': JSON.stringify({
        type: 'PermissionSet',
        apiName: 'Noting',
        label: 'Noting',
        actions: ['Deal__c.note'],
      }),
    });
    const { permissionSetApiNames: held } = (await ada.get(`/data/User/${deals.ids.mia}`)).body;
    await deals.setUser('mia', { permissionSetApiNames: [...held, 'Noting'] });
    await deals.setUser('ada', { permissionSetApiNames: ['Noting'] });
    const runId = await begin(ada);
    const { id, etag } = await newDeal();
    const note = (body?: string): Promise<Answer> =>
      send(runId, ['POST', `/data/Deal__c/${id}/transitions/note`, body, etag]);
    await decide(await note(), 'reject');
    for (const body of ['{}', '{"input":{}}', '{"input":{"stage":null}}', '{"comment":" "}'])
      refused(await note(body), 403, 'APPROVAL_REJECTED');
    for (const body of ['{"input":{"stage":""}}', '{"comment":"Please."}'])
      refused(await note(body), 403, 'APPROVAL_REQUIRED');
  });

  it('stays rejected in every spelling of a deployment with the same plan', async () => {
    const runId = await begin(ada);
    const deploy = (files: Record<string, string>): Promise<Answer> => {
      const body = { files, package: { version: 1, types: [{ name: 'Group', members: ['Tried'] }] } };
      return send(runId, ['POST', '/metadata/deploy', JSON.stringify(body)]);
    };
    const path = 'groups/Tried.yaml';
    await decide(await deploy({ [path]: 'type: Group\napiName: Tried\nlabel: Tried\n' }), 'reject');
    refused(await deploy({ [path]: 'apiName: Tried\ntype: Group\nlabel: "Tried"\n' }), 403, 'APPROVAL_REJECTED');
    refused(await deploy({ [path]: 'type: Group\napiName: Tried\nlabel: Other\n' }), 403, 'APPROVAL_REQUIRED');
  });

  it('does not withdraw an approval of the exact request', async () => {
    const runId = await begin(ada);
    const { id, etag } = await newDeal();
    const spelled = [`/data/Deal__c/${id}`, `/data/Deal__c/${id.toUpperCase()}`] as const;
    const remove = (path: string): Promise<Answer> => send(runId, ['DELETE', path, undefined, etag]);
    const [first, second] = [await remove(spelled[0]), await remove(spelled[1])];
    await decide(second, 'approve');
    await decide(first, 'reject');
    refused(await remove(spelled[0]), 403, 'APPROVAL_REJECTED');
    assert.equal((await remove(spelled[1])).status, 200);
    assert.equal((await sam.get(`/data/Deal__c/${id}`)).status, 404);
  });
});
