/** Calls that give access: docs/reference/agents.md#risk and docs/reference/access.md#giving-access. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { OPERATIONS } from '../../../contracts/operations.ts';
import type { Operation } from '../../../lib/operation.ts';
import { type Answer, type Api, api, type CallOptions, tokenFor } from '../../support/client.ts';
import { fieldFile } from '../../support/metadata-tenant.ts';
import { type Deals, startDeals } from '../data/deals.ts';

const GOAL = { agentKey: 'tester', goal: 'Tidy users.' };
const WRITES = 'agent:run data:read data:write data:delete actions:read actions:execute analytics:read analytics:run';

const policy = (rules: readonly object[]): Record<string, string> => ({
  'agentPolicies/Access.yaml': JSON.stringify({
    type: 'AgentPolicy',
    apiName: 'Access',
    appliesTo: { clients: ['*'] },
    rules,
  }),
});

const RISKS = ['low', 'medium', 'high', undefined];

/** Actions of deals by their risk, and one whose risk is not declared. */
const ACTIONS = {
  'permissionSets/Acts.yaml': JSON.stringify({
    type: 'PermissionSet',
    apiName: 'Acts',
    label: 'Acts',
    actions: RISKS.map((risk) => `Deal__c.Rename${risk ?? ''}`),
  }),
  ...Object.fromEntries(
    RISKS.map((risk) => {
      const apiName = `Rename${risk ?? ''}`;
      const effects = [{ verb: 'updateFields', fields: { Stage__c: `"${apiName}"` } }];
      const action = { type: 'CustomAction', apiName, object: 'Deal__c', label: apiName, risk, effects };
      return [`objects/Deal__c/actions/${apiName}.yaml`, JSON.stringify(action)];
    }),
  ),
};

describe('calls that give access', function () {
  this.timeout(180_000);
  let deals: Deals;
  let ada: Api;
  /** On behalf of an administrator, without and with the scope that gives access. */
  let narrow: Api;
  let wide: Api;
  let deal: Answer;
  before(async () => {
    deals = await startDeals();
    ({ ada } = deals.as);
    const { baseUrl } = deals.platform;
    narrow = api(baseUrl, await tokenFor(baseUrl, 'ada', WRITES));
    wide = api(baseUrl, await tokenFor(baseUrl, 'ada', `${WRITES} users:manage`));
    await deals.deploy({
      ...policy([]),
      ...ACTIONS,
      ...fieldFile('User', 'PersonnelNumber__c', 'fieldType: text\nexternalId: true\nunique: true'),
    });
    await deals.setUser('ada', { permissionSetApiNames: ['Acts'] });
    deal = await deals.deal(ada, { name: 'Deal' });
  });
  after(() => deals?.platform.stop());

  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body?.code], [status, code], reply.text);
  const begin = async (who: Api): Promise<string> => {
    const reply = await who.post('/agent/runs', GOAL);
    assert.equal(reply.status, 201, reply.text);
    return reply.body.runId;
  };
  const under = (runId: string | null, more: CallOptions = {}): CallOptions =>
    runId === null ? more : { ...more, headers: { ...more.headers, 'x-agent-run-id': runId } };
  const etagOf = async (path: string): Promise<string> => (await ada.get(path)).headers.get('etag') ?? '';
  const newcomer = () => ({
    name: 'Newcomer',
    username: `n${randomUUID()}@demo.example`,
    email: 'newcomer@elsewhere.example',
    profileApiName: 'Administrator',
  });

  type Call = (who: Api, runId: string | null) => Promise<Answer>;
  const changed =
    (fields: object): Call =>
    async (who, runId) => {
      const path = `/data/User/${deals.ids.sam}`;
      return who.patch(path, fields, under(runId, { etag: await etagOf(path) }));
    };
  const WAYS: Readonly<Record<string, Call>> = {
    'a new user': (who, runId) => who.post('/data/User', newcomer(), under(runId)),
    'a profile': changed({ profileApiName: 'Administrator' }),
    'a manager': (who, runId) => changed({ managerId: deals.ids.sue })(who, runId),
    'a username': changed({ username: 'renamed@demo.example' }),
    'a mail address': changed({ email: 'other@elsewhere.example' }),
    'a user by external id': (who, runId) =>
      who.put(`/data/User/by/PersonnelNumber__c/${randomUUID().slice(0, 8)}`, newcomer(), under(runId)),
    'a share of a record': (who, runId) =>
      who.post(
        `/data/Deal__c/${deal.body.id}/shares`,
        { principalType: 'user', principalId: deals.ids.sue, access: 'edit' },
        under(runId),
      ),
    'the end of a share': (who, runId) =>
      who.delete(`/data/Deal__c/${deal.body.id}/shares/${randomUUID()}`, under(runId)),
    'a dashboard for others': (who, runId) =>
      who.post('/analytics/dashboards', { name: `D ${randomUUID()}`, visibility: 'public' }, under(runId)),
  };

  for (const [name, call] of Object.entries(WAYS))
    it(`need users:manage from every client, and approval from every agent: ${name}`, async () => {
      for (const runId of [await begin(narrow), null]) {
        const reply = await call(narrow, runId);
        refused(reply, 403, 'SCOPE_INSUFFICIENT');
        assert.ok(reply.body.details.required.includes('users:manage'), reply.text);
      }
      if (name === 'the end of a share') return;
      const asked = await call(wide, await begin(wide));
      refused(asked, 403, 'APPROVAL_REQUIRED');
      const approval = (await ada.get(`/agent/approvals/${asked.body.details.approvalId}`)).body;
      assert.equal(approval.risk, 'high');
    });

  it('are reported by a check, which requires the scope as well', async () => {
    const body = { operation: 'create', fields: newcomer() };
    refused(await narrow.post('/data/User/check', body, under(await begin(narrow))), 403, 'SCOPE_INSUFFICIENT');
    const told = await wide.post('/data/User/check', body, under(await begin(wide)));
    assert.deepEqual([told.status, told.body.approvalRequired], [200, true], told.text);
  });

  it('include neither private dashboards nor other records', async () => {
    const runId = await begin(narrow);
    const made = await narrow.post(
      '/analytics/dashboards',
      { name: 'Mine', visibility: 'private', sharedWith: [] },
      under(runId),
    );
    assert.equal(made.status, 201, made.text);
    assert.equal((await narrow.post('/data/Deal__c', { name: 'Plain' }, under(runId))).status, 201);
  });

  it('are not covered by an allow of a broad rule, but by a rule that names the giving of access', async () => {
    const create = async (): Promise<Answer> => wide.post('/data/User', newcomer(), under(await begin(wide)));
    const share = async (): Promise<Answer> => WAYS['a share of a record']!(wide, await begin(wide));
    for (const broad of [
      { operationIds: ['data.*'] },
      { operationIds: ['data.records.create', 'data.records.update'] },
      { risk: 'medium' },
      {},
      { objects: ['Deal__c'] },
    ]) {
      await deals.deploy(policy([{ ...broad, decision: 'allow' }]));
      refused(await create(), 403, 'APPROVAL_REQUIRED');
      refused(await share(), 403, 'APPROVAL_REQUIRED');
    }
    await deals.deploy(policy([{ objects: ['User'], decision: 'allow' }]));
    assert.equal((await create()).status, 201);
    refused(await share(), 403, 'APPROVAL_REQUIRED');
    await deals.deploy(policy([{ operationIds: ['data.shares.create'], decision: 'allow' }]));
    assert.equal((await share()).status, 201);
    await deals.deploy(policy([{ risk: 'high', decision: 'allow' }]));
    assert.equal((await create()).status, 201);
    await deals.deploy(policy([]));
  });

  it('exclude a change of owner, which needs approval but no further scope', async () => {
    const runId = await begin(narrow);
    const path = `/data/Deal__c/${deal.body.id}`;
    const etag = await etagOf(path);
    refused(await narrow.patch(path, { ownerId: deals.ids.sue }, under(runId, { etag })), 403, 'APPROVAL_REQUIRED');
    const check = { operation: 'update', id: deal.body.id, ifMatch: etag, fields: { ownerId: deals.ids.sue } };
    assert.equal((await narrow.post('/data/Deal__c/check', check, under(runId))).body.approvalRequired, true);
    assert.equal((await narrow.patch(path, { Stage__c: 'won' }, under(runId, { etag }))).status, 200);
  });

  it('leave transitions to their declared risk, and require approval without one', async () => {
    const path = `/data/Deal__c/${deal.body.id}`;
    const listed = async (who: string | null): Promise<[string, boolean][]> =>
      (await narrow.get(`${path}/transitions`, under(who))).body.records.map(
        (one: { transitionKey: string; requiresApproval: boolean }) => [one.transitionKey, one.requiresApproval],
      );
    assert.deepEqual(Object.fromEntries(await listed(await begin(narrow))), {
      Rename: true,
      Renamehigh: true,
      Renamelow: false,
      Renamemedium: false,
    });
    assert.ok((await listed(null)).every(([, asks]) => !asks));
    const take = async (key: string): Promise<Answer> =>
      narrow.post(`${path}/transitions/${key}`, {}, under(await begin(narrow), { etag: await etagOf(path) }));
    for (const key of ['Renamelow', 'Renamemedium']) {
      const taken = await take(key);
      assert.equal(taken.status, 201, taken.text);
    }
    for (const key of ['Renamehigh', 'Rename']) refused(await take(key), 403, 'APPROVAL_REQUIRED');
    await deals.deploy(policy([{ risk: 'low', decision: 'approve' }]));
    refused(await take('Renamelow'), 403, 'APPROVAL_REQUIRED');
    await deals.deploy(policy([]));
  });

  it('are never effects of transitions and actions', async () => {
    const effects = [{ verb: 'createRecord', object: 'User', fields: { name: '"Hired"' } }];
    const action = (apiName: string, object: string, more: object): Record<string, string> => ({
      [`objects/${object}/actions/${apiName}.yaml`]: JSON.stringify({
        type: 'CustomAction',
        apiName,
        object,
        label: apiName,
        ...more,
      }),
    });
    const { body } = await ada.post('/metadata/validate', {
      package: { version: 1, types: [{ name: 'CustomAction', members: ['Deal__c.Hire', 'User.Promote'] }] },
      files: { ...action('Hire', 'Deal__c', { effects }), ...action('Promote', 'User', {}) },
    });
    assert.deepEqual(body.blocked.map(({ message }: { message: string }) => message).sort(), [
      'Users are not created by an effect.',
      'Users have no custom actions.',
    ]);
  });

  it('include the choice of approvers, which requires the permission to manage access', async () => {
    await deals.deploy({
      'permissionSets/UserAdmin.yaml': JSON.stringify({
        type: 'PermissionSet',
        apiName: 'UserAdmin',
        label: 'User admin',
        system: ['manageUsers'],
      }),
    });
    await deals.setUser('mia', { permissionSetApiNames: ['Deals', 'UserAdmin'] });
    const { mia } = deals.as;
    const path = `/data/User/${deals.ids.sam}`;
    const set = async (fields: object): Promise<Answer> => mia.patch(path, fields, { etag: await etagOf(path) });
    const own = (await ada.get(path)).body;
    const rule = { operationIds: ['data.records.delete'], decision: 'approve' };
    await deals.deploy(policy([{ ...rule, approvers: [{ user: deals.ids.ada }] }]));
    assert.equal((await set({ managerId: deals.ids.sue })).status, 200);
    for (const escalateTo of [undefined, [{ manager: true }]]) {
      const who = escalateTo ? { approvers: [{ user: deals.ids.ada }], escalateAfterSeconds: 600, escalateTo } : null;
      await deals.deploy(policy([{ ...rule, ...(who ?? { approvers: [{ manager: true }] }) }]));
      refused(await set({ managerId: deals.ids.mia }), 403, 'FIELD_PERMISSION_DENIED');
      assert.equal((await set({ managerId: deals.ids.sue, locale: 'en' })).status, 200, 'what stays is no choice');
    }
    await deals.deploy(policy([{ ...rule, approvers: [{ role: own.roleApiName }] }]));
    refused(await set({ roleApiName: null }), 403, 'FIELD_PERMISSION_DENIED');
    assert.equal((await set({ managerId: deals.ids.mia })).status, 200);

    const deciders = (members: object): Record<string, string> => ({
      'groups/Deciders.yaml': JSON.stringify({ type: 'Group', apiName: 'Deciders', label: 'Deciders', members }),
    });
    const { username, roleApiName } = (await ada.get(`/data/User/${deals.ids.mia}`)).body;
    const byGroup = policy([{ ...rule, approvers: [{ group: 'Deciders' }] }]);
    await deals.deploy({ ...byGroup, ...deciders({ roles: [roleApiName] }) });
    refused(await set({ roleApiName }), 403, 'FIELD_PERMISSION_DENIED');
    assert.equal((await set({ roleApiName: null })).status, 200, 'who is in the group stays the same');
    await deals.deploy(deciders({ users: [username, 'second@demo.example'] }));
    refused(await set({ username: 'second@demo.example' }), 403, 'FIELD_PERMISSION_DENIED');
    assert.equal((await set({ roleApiName: own.roleApiName })).status, 200);
    await deals.deploy(policy([]));
    await deals.setUser('mia', { permissionSetApiNames: ['Deals'] });
  });

  it('include every operation that writes users', () => {
    const rows: readonly Operation[] = OPERATIONS;
    const changing = rows.filter(
      ({ mutation, path }) => mutation && (path.includes('{objectApiName}') || path.startsWith('/users/')),
    );
    assert.ok(changing.length >= 8);
    for (const { operationId, givesAccess } of changing) assert.equal(givesAccess?.scope, 'users:manage', operationId);
  });
});
