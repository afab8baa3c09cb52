/** Deciders of agents' requests see and decide only what they could see and send themselves. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Answer, type Api, api, type CallOptions, tokenFor } from '../../support/client.ts';
import {
  deploymentEnded,
  destructiveManifest,
  fieldFile,
  objectFiles,
  wholePackage,
} from '../../support/metadata-tenant.ts';
import { type Deals, startDeals } from '../data/deals.ts';

const set = (name: string, body: object): Record<string, string> => ({
  [`permissionSets/${name}.yaml`]: JSON.stringify({ type: 'PermissionSet', apiName: name, label: name, ...body }),
});
const all = { create: true, read: true, update: true, delete: true };

const FILES = {
  ...fieldFile('Deal__c', 'Code__c', 'fieldType: text\nlength: 40\nunique: true\nexternalId: true'),
  ...objectFiles('Vault__c'),
  ...objectFiles('Deal__c', {}, 'sharingDefault: private\nfeatures:\n  duplicates: true\n'),
  ...set('Codes', { fields: { 'Deal__c.Code__c': { read: true, edit: true } }, actions: ['Deal__c.addLine'] }),
  ...set('Vaults', { objects: { Vault__c: all } }),
  'objects/Deal__c/actions/hide.yaml': JSON.stringify({
    type: 'CustomAction',
    apiName: 'hide',
    object: 'Deal__c',
    label: 'Hide',
    permission: 'Deal__c.hide',
    effects: [{ verb: 'updateFields', fields: { Stage__c: "'hidden'" } }],
  }),
  ...set('Hiding', { actions: ['Deal__c.hide'] }),
  'objects/Deal__c/actions/addLine.yaml': JSON.stringify({
    type: 'CustomAction',
    apiName: 'addLine',
    object: 'Deal__c',
    label: 'Add a line',
    permission: 'Deal__c.addLine',
    input: { type: 'object', properties: { to: { type: 'string' } } },
    effects: [{ verb: 'createRecord', object: 'DealLine__c', fields: { name: "'Line'", Deal__c: 'input.to' } }],
  }),
  ...set('Secrets', { fields: { 'Deal__c.Secret__c': { read: true, edit: true } } }),
  ...set('Builders', { system: ['metadataManage', 'metadataRead'] }),
  ...set('Overseers', { system: ['approveAgentActions'], objects: { Deal__c: all } }),
  'objects/Deal__c/duplicateRules/Same_secret.yaml': JSON.stringify({
    type: 'DuplicateRule',
    object: 'Deal__c',
    apiName: 'Same_secret',
    label: 'Same secret',
    active: true,
    action: 'confirm',
    scope: 'visible',
    match: [{ field: 'Secret__c', method: 'exact', weight: 1 }],
    threshold: 1,
  }),
  'agentPolicies/All.yaml': JSON.stringify({
    type: 'AgentPolicy',
    apiName: 'All',
    appliesTo: { clients: ['*'] },
    rules: [{ operationIds: ['analytics.*', 'data.*', 'me.*', 'metadata.*'], decision: 'approve' }],
  }),
};

const widgetOf = (objectApiName: string) => ({
  widgetKey: 'count',
  type: 'metric',
  title: 'How many',
  layout: { x: 0, y: 0, w: 3, h: 2 },
  query: { objectApiName, dimensions: [], measures: [{ key: 'n', aggregation: 'count' }] },
});

describe('people and the requests of agents', function () {
  this.timeout(180_000);
  let deals: Deals;
  let ada: Api;
  let mia: Api;
  let sam: Api;
  let sue: Api;
  before(async () => {
    deals = await startDeals();
    ({ ada, mia, sam, sue } = deals.as);
    await deals.deploy(FILES);
    await deals.setUser('sam', { permissionSetApiNames: ['Deals', 'Codes', 'Vaults', 'Secrets', 'Hiding'] });
    await deals.setUser('ada', { permissionSetApiNames: ['Hiding'] });
    await deals.setUser('mia', { permissionSetApiNames: ['Deals', 'Codes', 'Builders'] });
    // Sue cannot see Sam's deals.
    await deals.setUser('sue', { permissionSetApiNames: ['Deals', 'Codes', 'Overseers'] });
    sue = api(deals.platform.baseUrl, await tokenFor(deals.platform.baseUrl, 'sue'));
  });
  after(() => deals?.platform.stop());

  const underRun = async (who: Api): Promise<CallOptions & { runId: string }> => {
    const reply = await who.post('/agent/runs', { agentKey: 'tester', goal: 'Tidy deals.' });
    assert.equal(reply.status, 201, reply.text);
    return { headers: { 'x-agent-run-id': reply.body.runId }, runId: reply.body.runId };
  };
  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body?.code], [status, code], reply.text);
  const pathOf = (asked: Answer): string => `/agent/approvals/${asked.body.details.approvalId}`;
  const decide = (who: Api, asked: Answer): Promise<Answer> => {
    refused(asked, 403, 'APPROVAL_REQUIRED');
    const { fingerprint } = asked.body.details;
    return who.post(`${pathOf(asked)}/decision`, { decision: 'approve', fingerprint });
  };
  const deal = async (more: object = {}): Promise<Answer> => deals.deal(sam, { name: `Deal ${randomUUID()}`, ...more });

  it('do not decide about an upsert of a record that they cannot see, nor learn its external id', async () => {
    const Code__c = `K-${randomUUID()}`;
    await deal({ Code__c });
    const run = await underRun(sam);
    const asked = await sam.put(`/data/Deal__c/by/Code__c/${Code__c}`, { name: 'Other' }, run);
    refused(await decide(sue, asked), 404, 'RECORD_NOT_FOUND');
    const shown = await sue.get(pathOf(asked));
    assert.equal(shown.body.request.body, '[hidden]');
    assert.equal(shown.body.path, '/api/v1/data/Deal__c/by/Code__c/[hidden]');
    for (const path of ['/agent/approvals?take=200', `/agent/runs/${run.runId}/steps`])
      assert.ok(!(await sue.get(path)).text.includes(Code__c), path);
    assert.ok((await mia.get(pathOf(asked))).body.path.endsWith(Code__c));
    assert.equal((await decide(mia, asked)).status, 201);
  });

  it('decide about an upsert of a new record', async () => {
    const asked = await sam.put(`/data/Deal__c/by/Code__c/${randomUUID()}`, { name: 'New' }, await underRun(sam));
    assert.deepEqual((await sue.get(pathOf(asked))).body.request.body, { name: 'New' });
    assert.equal((await decide(sue, asked)).status, 201);
  });

  it('do not decide about restoring a record that they could not see', async () => {
    const { id } = (await deal()).body;
    const etag = (await sam.get(`/data/Deal__c/${id}`)).headers.get('etag') ?? '';
    assert.equal((await sam.delete(`/data/Deal__c/${id}`, { etag })).status, 200);
    const asked = await sam.post(`/data/Deal__c/${id}/restore`, undefined, await underRun(sam));
    refused(await decide(sue, asked), 404, 'RECORD_NOT_FOUND');
    assert.equal((await decide(mia, asked)).status, 201);
    assert.equal((await mia.get(pathOf(asked))).body.path, `/api/v1/data/Deal__c/${id}/restore`);
  });

  it('do not decide about changes that sharing denies them', async () => {
    const { id } = (await deal()).body;
    const share = { principalType: 'user', principalId: deals.ids.sue, access: 'read' };
    const shared = await sam.post(`/data/Deal__c/${id}/shares`, share);
    assert.equal(shared.status, 201, shared.text);
    const etag = (await sam.get(`/data/Deal__c/${id}`)).headers.get('etag') ?? '';
    const asked = await sam.patch(`/data/Deal__c/${id}`, { name: 'Other' }, { ...(await underRun(sam)), etag });
    refused(await decide(sue, asked), 403, 'RECORD_ACCESS_DENIED');
    assert.equal((await decide(mia, asked)).status, 201);
  });

  it('do not decide about transitions and actions that they may not execute', async () => {
    const { id } = (await deal()).body;
    const etag = (await sam.get(`/data/Deal__c/${id}`)).headers.get('etag') ?? '';
    const asked = await sam.post(`/data/Deal__c/${id}/transitions/hide`, {}, { ...(await underRun(sam)), etag });
    refused(await decide(mia, asked), 403, 'TRANSITION_NOT_ALLOWED');
    assert.equal((await decide(ada, asked)).status, 201);
  });

  describe('under a parent', () => {
    const shared = async (access: string): Promise<string> => {
      const { id } = (await deal()).body;
      const share = { principalType: 'user', principalId: deals.ids.sue, access };
      assert.equal((await sam.post(`/data/Deal__c/${id}/shares`, share)).status, 201);
      return id;
    };

    it('do not decide about records of a parent that they may not change', async () => {
      const [shown, open] = [await shared('read'), await shared('edit')];
      const line = async (Deal__c: string): Promise<Answer> =>
        sam.post('/data/DealLine__c', { name: 'Line', Deal__c }, await underRun(sam));
      refused(await decide(sue, await line(shown)), 403, 'RECORD_ACCESS_DENIED');
      assert.equal((await decide(sue, await line(open))).status, 201);
      const { headers, body } = await sam.post('/data/DealLine__c', { name: 'Line', Deal__c: open });
      const move = async (Deal__c: string): Promise<Answer> =>
        sam.patch(
          `/data/DealLine__c/${body.id}`,
          { Deal__c, name: 'Moved' },
          { ...(await underRun(sam)), etag: headers.get('etag') ?? '' },
        );
      refused(await decide(sue, await move(shown)), 403, 'RECORD_ACCESS_DENIED');
      assert.equal((await decide(mia, await move(shown))).status, 201);
      assert.equal((await decide(sue, await move(open))).status, 201);
    });

    it("do not decide about a transition's effects on records that they cannot see or change", async () => {
      const [shown, open] = [await shared('read'), await shared('edit')];
      const etag = (await sam.get(`/data/Deal__c/${open}`)).headers.get('etag') ?? '';
      const addLine = async (to: string): Promise<Answer> =>
        sam.post(`/data/Deal__c/${open}/transitions/addLine`, { input: { to } }, { ...(await underRun(sam)), etag });
      const hidden = await addLine((await deal()).body.id);
      refused(await decide(sue, hidden), 404, 'RECORD_NOT_FOUND');
      refused(await decide(sue, await addLine(shown)), 403, 'RECORD_ACCESS_DENIED');
      assert.equal((await decide(sue, await addLine(open))).status, 201);
      assert.equal((await decide(mia, hidden)).status, 201);
    });
  });

  describe('on dashboards', () => {
    const create = async (more: object = {}): Promise<{ path: string; revision: number }> => {
      const reply = await sam.post('/analytics/dashboards', { name: 'Mine', description: 'For me.', ...more });
      assert.equal(reply.status, 201, reply.text);
      return { path: `/analytics/dashboards/${reply.body.dashboardId}`, revision: reply.body.revision };
    };

    it('neither see nor decide about dashboards that are not shared with them', async () => {
      const { path, revision } = await create({ widgets: [widgetOf('Vault__c')] });
      const asks = async (): Promise<Answer[]> => [
        await sam.patch(path, { expectedRevision: revision, name: 'Other' }, await underRun(sam)),
        await sam.post(`${path}/publish`, { expectedRevision: revision }, await underRun(sam)),
        await sam.delete(path, { headers: { ...(await underRun(sam)).headers, 'x-expected-revision': `${revision}` } }),
      ];
      for (const asked of await asks()) {
        refused(await decide(mia, asked), 404, 'DASHBOARD_NOT_FOUND');
        const { body, text } = await mia.get(pathOf(asked));
        assert.deepEqual([body.request.body ?? '[hidden]', body.preview], ['[hidden]', { hidden: true }]);
        assert.ok(body.path.startsWith('/api/v1/analytics/dashboards/[hidden]'), body.path);
        for (const secret of ['Vault__c', 'For me.', 'Other']) assert.ok(!text.includes(secret), text);
        const own = await sam.get(pathOf(asked));
        assert.ok(own.body.path.startsWith(`/api/v1${path}`));
      }
    });

    it('decide about dashboards that they may change, but not about their sharing', async () => {
      const share = { principalType: 'user', principalId: deals.ids.mia, access: 'edit' };
      const { path, revision } = await create({ visibility: 'shared', sharedWith: [share] });
      const change = async (body: object): Promise<Answer> =>
        sam.patch(path, { expectedRevision: revision, ...body }, await underRun(sam));
      const renamed = await change({ name: 'Other' });
      assert.equal((await mia.get(pathOf(renamed))).body.request.body.name, 'Other');
      assert.equal((await decide(mia, renamed)).status, 201);
      refused(await decide(mia, await change({ visibility: 'public' })), 403, 'RECORD_ACCESS_DENIED');
      const vaults = await change({ widgets: [widgetOf('Vault__c')] });
      refused(await decide(mia, vaults), 403, 'RECORD_ACCESS_DENIED');
      assert.equal((await mia.get(pathOf(vaults))).body.request.body, '[hidden]');
    });

    it('decide about new dashboards that they could create', async () => {
      const ask = async (objectApiName: string): Promise<Answer> =>
        sam.post('/analytics/dashboards', { name: 'New', widgets: [widgetOf(objectApiName)] }, await underRun(sam));
      assert.equal((await decide(mia, await ask('Deal__c'))).status, 201);
      const asked = await ask('Vault__c');
      refused(await decide(mia, asked), 403, 'RECORD_ACCESS_DENIED');
      assert.ok(!(await mia.get(pathOf(asked))).text.includes('Vault__c'));
    });
  });

  it('see no duplicates and fields that are hidden from them', async () => {
    const { id } = (await deal({ Secret__c: 'same' })).body;
    const asked = await sam.post('/data/Deal__c', { name: 'Again', Secret__c: 'same' }, await underRun(sam));
    const [rule] = (await sue.get(pathOf(asked))).body.preview.duplicates;
    assert.deepEqual([rule.ruleApiName, rule.label], ['[hidden]', '[hidden]']);
    const [match] = rule.matches;
    assert.deepEqual([match.id, match.score, match.matchedFields], ['[hidden]', null, []]);
    const [seen] = (await mia.get(pathOf(asked))).body.preview.duplicates[0].matches;
    assert.deepEqual([seen.id, seen.matchedFields], [id, []], 'Mia sees the record and not the field');
  });

  it('see no waiting requests on objects that are hidden from them', async () => {
    const made = await sam.post('/data/Vault__c', { name: 'Vault' });
    const run = await underRun(sam);
    const asked = await sam.delete(`/data/Vault__c/${made.body.id}`, { ...run, etag: made.headers.get('etag') ?? '' });
    refused(asked, 403, 'APPROVAL_REQUIRED');
    const summaries = async (who: Api): Promise<string[]> =>
      (await who.get(`/agent/runs/${run.runId}`)).body.pendingApprovals.map((one: { summary: string }) => one.summary);
    assert.deepEqual(await summaries(mia), ['[hidden]']);
    assert.deepEqual(await summaries(sam), ['DELETE Vault__c']);
    assert.deepEqual(await summaries(ada), ['DELETE Vault__c']);
  });

  describe('on configuration', () => {
    const deployment = async (files: Record<string, string>): Promise<Answer> =>
      ada.post('/metadata/deploy', { files, package: wholePackage(files) }, await underRun(ada));

    it('decide only with metadataManage', async () => {
      const asked = await deployment(objectFiles('Plain__c'));
      refused(await decide(sue, asked), 403, 'METADATA_PERMISSION_DENIED');
      assert.deepEqual((await sue.get(pathOf(asked))).body.preview, { hidden: true });
    });

    it('decide without manageAccess about changes that give no rights', async () => {
      const asked = await deployment(objectFiles('Plain__c'));
      assert.equal((await mia.get(pathOf(asked))).body.preview.handsOutRights, false);
      assert.equal((await decide(mia, asked)).status, 201);
    });

    it('see the plan of recorded validations and of rollbacks', async () => {
      const files = objectFiles('Short__c');
      const pkg = wholePackage(files);
      const ended = async (asked: Answer): Promise<Answer['body']> => deploymentEnded(ada, asked);
      const validation = await ended(await ada.post('/metadata/deploy', { files, package: pkg, checkOnly: true }));
      const quick = { quickDeploy: { validationId: validation.deploymentId } };
      const run = await underRun(ada);
      const asked = await ada.post('/metadata/deploy', quick, run);
      refused(asked, 403, 'APPROVAL_REQUIRED');
      const { preview } = (await mia.get(pathOf(asked))).body;
      assert.deepEqual([preview.planHash, preview.handsOutRights], [validation.planHash, false]);
      assert.equal(preview.creates[0].fullName, 'Short__c');
      const applied = await ended(await ada.post('/metadata/deploy', { files, package: pkg }));
      const back = await ada.post(
        '/metadata/deploy',
        { rollback: { deploymentId: applied.deploymentId } },
        await underRun(ada),
      );
      refused(back, 403, 'APPROVAL_REQUIRED');
      assert.equal((await mia.get(pathOf(back))).body.preview.deletes[0].fullName, 'Short__c');
    });

    it('do not decide without manageAccess about a rollback that restores records', async () => {
      const ended = async (asked: Answer): Promise<Answer['body']> => {
        const done = await deploymentEnded(ada, asked);
        assert.equal(done.status, 'SUCCEEDED', JSON.stringify(done.blocked));
        return done;
      };
      const files = objectFiles('Gone__c', { Code__c: 'fieldType: text' });
      await ended(await ada.post('/metadata/deploy', { files, package: wholePackage(files) }));
      const { deploymentId } = await ended(
        await ada.post('/metadata/deploy', {
          files: destructiveManifest({ CustomObject: ['Gone__c'] }),
          package: { version: 1, types: [] },
          allowDestructiveChanges: true,
        }),
      );
      const asked = await ada.post('/metadata/deploy', { rollback: { deploymentId } }, await underRun(ada));
      refused(asked, 403, 'APPROVAL_REQUIRED');
      assert.equal((await mia.get(pathOf(asked))).body.preview.handsOutRights, true);
      refused(await decide(mia, asked), 403, 'OBJECT_PERMISSION_DENIED');
    });

    it('do not decide without manageAccess about changes that give rights', async () => {
      for (const files of [
        set('Master', { system: ['modifyAllData'] }),
        {
          'agentPolicies/Open.yaml': JSON.stringify({
            type: 'AgentPolicy',
            apiName: 'Open',
            appliesTo: { clients: ['erp-cli'] },
            rules: [{ risk: 'high', decision: 'allow' }],
          }),
        },
      ]) {
        const asked = await deployment(files);
        const answer = await decide(mia, asked);
        refused(answer, 403, 'OBJECT_PERMISSION_DENIED');
        assert.equal(answer.body.details.permission, 'manageAccess');
        assert.equal((await mia.get(pathOf(asked))).body.preview.handsOutRights, true);
      }
    });
  });
});
