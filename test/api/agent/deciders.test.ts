/** Users who may not decide a request of an agent: those at its own client, and those who cannot see its records. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { signIn } from '../../../scripts/sign-in.ts';
import { type Answer, type Api, api, type CallOptions } from '../../support/client.ts';
import { fieldFile } from '../../support/metadata-tenant.ts';
import { type Deals, startDeals } from '../data/deals.ts';

const client = (name: string, agent: boolean): string =>
  JSON.stringify({
    type: 'ExternalClient',
    apiName: name,
    name,
    redirectUris: ['http://127.0.0.1/callback'],
    scopes: ['agent:approve', 'agent:run', 'data:delete', 'data:read', 'data:write'],
    grantTypes: ['authorization_code'],
    agent,
    active: true,
  });

const FILES = {
  'externalClients/Desk.yaml': client('Desk', false),
  'externalClients/Robot.yaml': client('Robot', true),
  ...fieldFile('Deal__c', 'Code__c', 'fieldType: text\nlength: 40\nunique: true\nexternalId: true'),
  ...fieldFile('Deal__c', 'Follows__c', 'fieldType: reference\nreferenceTo: [Deal__c]'),
  ...fieldFile('Deal__c', 'Notes__c', 'fieldType: longText\nlength: 131072'),
  'permissionSets/Codes.yaml': JSON.stringify({
    type: 'PermissionSet',
    apiName: 'Codes',
    label: 'Codes',
    fields: Object.fromEntries(
      ['Code__c', 'Follows__c', 'Notes__c'].map((field) => [`Deal__c.${field}`, { read: true, edit: true }]),
    ),
  }),
  'agentPolicies/Deals.yaml': JSON.stringify({
    type: 'AgentPolicy',
    apiName: 'Deals',
    appliesTo: { clients: ['*'] },
    rules: [
      { operationIds: ['data.records.create', 'data.records.update', 'data.records.upsert'], decision: 'approve' },
    ],
    allowSelfApproval: true,
  }),
};

describe("deciders of agents' requests", function () {
  this.timeout(180_000);
  let deals: Deals;
  let ada: Api;
  let mia: Api;
  let sam: Api;
  before(async () => {
    deals = await startDeals();
    ({ ada, mia, sam } = deals.as);
    await deals.deploy(FILES);
    for (const name of ['mia', 'sam'] as const)
      await deals.setUser(name, { permissionSetApiNames: ['Deals', 'Codes'] });
  });
  after(() => deals?.platform.stop());

  const at = async (user: string, clientName: string): Promise<Api> => {
    const { baseUrl } = deals.platform;
    const { access_token } = await signIn({
      baseUrl,
      user: `${user}@demo.example`,
      password: 'demo-password',
      clientId: `demo-${clientName}`,
      scope: 'agent:approve agent:run data:delete data:read data:write',
    });
    return api(baseUrl, access_token);
  };
  const underRun = async (who: Api): Promise<CallOptions> => {
    const reply = await who.post('/agent/runs', { agentKey: 'tester', goal: 'Tidy deals.' });
    assert.equal(reply.status, 201, reply.text);
    return { headers: { 'x-agent-run-id': reply.body.runId } };
  };
  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body?.code], [status, code], reply.text);
  const decide = (who: Api, asked: Answer, decision = 'approve'): Promise<Answer> => {
    refused(asked, 403, 'APPROVAL_REQUIRED');
    const { approvalId, fingerprint } = asked.body.details;
    const comment = decision === 'reject' ? { comment: 'No.' } : {};
    return who.post(`/agent/approvals/${approvalId}/decision`, { decision, fingerprint, ...comment });
  };

  describe('by client', () => {
    const ask = async (who: Api): Promise<Answer> =>
      who.post('/data/Deal__c', { name: `Deal ${randomUUID()}` }, await underRun(who));

    it('excludes every user at the client that asked', async () => {
      const asked = await ask(await at('sam', 'Desk'));
      const miaThere = await at('mia', 'Desk');
      const answer = await decide(miaThere, asked);
      refused(answer, 403, 'APPROVAL_ACTOR_NOT_HUMAN');
      assert.equal(answer.body.message, 'The requesting client cannot decide: use another one.');
      refused(await decide(miaThere, asked, 'reject'), 403, 'APPROVAL_ACTOR_NOT_HUMAN');
      assert.equal((await decide(mia, asked)).status, 201);
    });

    it('excludes every client that is an agent, not only the one that asked', async () => {
      const miaAtRobot = await at('mia', 'Robot');
      for (const who of [sam, await at('sam', 'Desk'), await at('sam', 'Robot')])
        refused(await decide(miaAtRobot, await ask(who)), 403, 'APPROVAL_ACTOR_NOT_HUMAN');
    });

    it('admits another user at the command line, which all users share', async () => {
      refused(await decide(mia, await ask(mia)), 403, 'APPROVAL_ACTOR_NOT_HUMAN');
      assert.equal((await decide(mia, await ask(sam))).status, 201);
    });
  });

  describe('by visibility', () => {
    /** Ada's deals are hidden from Mia, Sam's are not. */
    const deal = async (who: Api, more: object = {}): Promise<string> =>
      (await deals.deal(who, { name: `Deal ${randomUUID()}`, ...more })).body.id;

    it('excludes users who cannot read the records that the request refers to', async () => {
      const [hidden, seen] = [await deal(ada, { Code__c: 'HIDDEN' }), await deal(sam, { Code__c: 'SEEN' })];
      const line = async (body: object): Promise<Answer> => {
        const asked = await ada.post(
          '/data/DealLine__c',
          { name: `Line ${randomUUID()}`, ...body },
          await underRun(ada),
        );
        return decide(mia, asked);
      };
      const answers = [
        await line({ Deal__c: hidden }),
        await line({ Deal__c: hidden.toUpperCase() }),
        await line({ Deal__c: { Code__c: 'HIDDEN' } }),
        await line({ Deal__c: randomUUID() }),
        await line({ Deal__c: { Code__c: 'NONE' } }),
      ];
      for (const answer of answers) {
        refused(answer, 404, 'RECORD_NOT_FOUND');
        const [error] = answer.body.errors;
        assert.deepEqual([error.code, error.field], ['REFERENCE_NOT_FOUND', 'Deal__c']);
        assert.equal(answer.body.message, answers[0]?.body.message, 'unknown and hidden look the same');
        assert.ok(!answer.text.includes(hidden));
      }
      for (const Deal__c of [seen, seen.toUpperCase(), { Code__c: 'SEEN' }])
        assert.equal((await line({ Deal__c })).status, 201);
    });

    it('excludes users who cannot read all records of a bulk creation, change or upsert', async () => {
      const [hidden, seen] = [await deal(ada), await deal(sam)];
      const created = await deals.deal(ada, { name: 'Shared', ownerId: deals.ids.sam });
      const etag = (await ada.get(`/data/Deal__c/${created.body.id}`)).headers.get('etag') ?? '';
      const requests = async (Follows__c: string | null): Promise<Answer[]> => [
        await ada.post('/data/Deal__c', { name: 'New', Follows__c, ownerId: deals.ids.sam }, await underRun(ada)),
        await ada.patch(`/data/Deal__c/${created.body.id}`, { Follows__c }, { ...(await underRun(ada)), etag }),
        await ada.put(`/data/Deal__c/by/Code__c/${randomUUID()}`, { name: 'New', Follows__c }, await underRun(ada)),
      ];
      for (const asked of await requests(hidden)) refused(await decide(mia, asked), 404, 'RECORD_NOT_FOUND');
      for (const Follows__c of [seen, null])
        for (const asked of await requests(Follows__c)) assert.equal((await decide(mia, asked)).status, 201);
    });

    it('excludes everyone when the body is too long to be shown', async () => {
      const body = { name: 'Long', Notes__c: 'ü'.repeat(131_072) };
      const asked = await sam.post('/data/Deal__c', body, await underRun(sam));
      refused(asked, 413, 'APPROVAL_TOO_LARGE');
      assert.deepEqual(asked.body.details, { part: 'body', maxBytes: 262_144 });
    });
  });
});
