/** Background work on deleted configuration reports the deletion and does not fail. */
import assert from 'node:assert/strict';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import {
  deploymentEnded,
  deployOverHttp,
  destructiveManifest,
  objectFiles,
  wholePackage,
} from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const access = (objects: readonly string[], fields: readonly string[]): Record<string, string> => ({
  'permissionSets/Left.yaml': [
    'type: PermissionSet\napiName: Left\nlabel: Left\nsystem: [apiEnabled]\nobjects:',
    ...objects.map((name) => `  ${name}: {create: true, read: true, update: true, delete: true, viewAll: true}`),
    'fields:',
    ...fields.map((name) => `  ${name}: {read: true, edit: true}`),
    '',
  ].join('\n'),
});
const policy = (decisions: Record<string, string>): Record<string, string> => ({
  'agentPolicies/Free.yaml': [
    'type: AgentPolicy\napiName: Free\nappliesTo: {clients: [erp-cli]}\nrules:',
    ...Object.entries(decisions).map(
      ([operation, decision]) => `  - operationIds: [${operation}]\n    decision: ${decision}`,
    ),
    '',
  ].join('\n'),
});

describe('API: references to deleted configuration', () => {
  let platform: TestPlatform;
  let ada: Api;
  let mia: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
    await deployOverHttp(ada, {
      ...objectFiles('Left__c', { Kept__c: 'fieldType: text', Gone__c: 'fieldType: text' }),
      ...objectFiles('Lost__c'),
      ...access(['Left__c', 'Lost__c'], ['Left__c.Kept__c', 'Left__c.Gone__c']),
      ...policy({
        'data.records.create': 'allow',
        'data.records.update': 'allow',
      }),
    });
    for (const user of ['ada', 'mia']) {
      const where = encodeURIComponent(JSON.stringify({ username: `${user}@demo.example` }));
      const { id } = (await ada.get(`/data/User?where=${where}`)).body.records[0];
      const etag = (await ada.get(`/data/User/${id}`)).headers.get('etag')!;
      const given = await ada.patch(`/data/User/${id}`, { permissionSetApiNames: ['Left'] }, { etag });
      assert.equal(given.status, 200, given.text);
    }
  });
  after(() => platform?.stop());

  const deleted = async (types: Record<string, string[]>, files: Record<string, string>): Promise<void> => {
    const all = { ...files, ...destructiveManifest(types) };
    const body = { files: all, package: wholePackage(all), allowDestructiveChanges: true };
    const { status, error, blocked } = await deploymentEnded(ada, await ada.post('/metadata/deploy', body));
    assert.equal(status, 'SUCCEEDED', JSON.stringify([error, blocked]));
  };
  const created = async (path: string, body: object, headers: Record<string, string> = {}): Promise<Answer['body']> => {
    const answer = await ada.post(path, body, { headers });
    assert.equal(answer.status, 201, answer.text);
    return answer.body;
  };
  const beginRun = async (): Promise<string> =>
    (await created('/agent/runs', { agentKey: 'tidy', goal: 'Tidy up.' })).runId;

  it('a run is reverted as far as possible, an approval has no effect, a dashboard names the deleted parts', async () => {
    const [runId, waiting] = [await beginRun(), await beginRun()];
    const { id } = await created('/data/Left__c', { name: 'One', Kept__c: 'a', Gone__c: 'a' });
    const lost = await created('/data/Lost__c', { name: 'Lost' });
    const headers = { 'x-agent-run-id': runId };
    const changed = await ada.patch(`/data/Left__c/${id}`, { Kept__c: 'b', Gone__c: 'b' }, { etag: '"1"', headers });
    assert.equal(changed.status, 200, changed.text);
    await created('/data/Lost__c', { name: 'Made' }, headers);
    await created(`/agent/runs/${runId}/complete`, { outcome: 'succeeded', summary: 'Done.' });
    const asked = await ada.delete(`/data/Lost__c/${lost.id}`, { etag: '"1"', headers: { 'x-agent-run-id': waiting } });
    assert.deepEqual([asked.status, asked.body.code], [403, 'APPROVAL_REQUIRED'], asked.text);
    const { dashboardId } = await created('/analytics/dashboards', {
      name: 'Left',
      widgets: [
        {
          widgetKey: 'gone',
          title: 'Gone',
          type: 'bar',
          layout: { x: 0, y: 0, w: 6, h: 4 },
          query: {
            objectApiName: 'Left__c',
            dimensions: [{ field: 'Gone__c' }],
            measures: [{ key: 'n', aggregation: 'count' }],
          },
        },
      ],
    });
    await deleted(
      { CustomField: ['Left__c.Gone__c'], CustomObject: ['Lost__c'] },
      access(['Left__c'], ['Left__c.Kept__c']),
    );

    const reverted = await ada.post(`/agent/runs/${runId}/revert`);
    assert.equal(reverted.status, 201, reverted.text);
    assert.deepEqual(reverted.body.reverted, [{ objectApiName: 'Left__c', id }]);
    assert.deepEqual(reverted.body.skipped, [{ objectApiName: null, id: null, reason: 'RECORD_NOT_FOUND' }]);
    assert.equal((await ada.get(`/data/Left__c/${id}`)).body.Kept__c, 'a');

    const { approvalId, fingerprint } = asked.body.details;
    const shown = await mia.get(`/agent/approvals/${approvalId}`);
    assert.deepEqual([shown.status, shown.body.code], [404, 'APPROVAL_NOT_FOUND'], shown.text);
    const decided = await mia.post(`/agent/approvals/${approvalId}/decision`, { decision: 'approve', fingerprint });
    assert.deepEqual([decided.status, decided.body.code], [404, 'APPROVAL_NOT_FOUND'], decided.text);
    const sent = await ada.delete(`/data/Lost__c/${lost.id}`, { etag: '"1"', headers: { 'x-agent-run-id': waiting } });
    assert.deepEqual([sent.status, sent.body.code], [403, 'APPROVAL_PENDING'], sent.text);

    const read = await ada.get(`/analytics/dashboards/${dashboardId}`);
    assert.equal(read.status, 200, read.text);
    const run = await ada.post(`/analytics/dashboards/${dashboardId}/widgets/gone/run`, {}, { idempotencyKey: null });
    assert.deepEqual(
      [run.status, run.body.code, run.body.errors[0].code],
      [422, 'WIDGET_QUERY_INVALID', 'FIELD_UNKNOWN'],
    );
  });
});
