import assert from 'node:assert/strict';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { destructiveManifest, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

type Files = Record<string, string>;
type Body = Answer['body'];

const child = (folder: string, type: string, name: string, body: string): Files => ({
  [`objects/Deal__c/${folder}/${name}.yaml`]: `type: ${type}\napiName: ${name}\nobject: Deal__c\n${body}`,
});
const top = (folder: string, type: string, name: string, body: string): Files => ({
  [`${folder}/${name}.yaml`]: `type: ${type}\napiName: ${name}\n${body}`,
});

const DEALS: Files = {
  ...objectFiles('Deal__c', { Amount__c: 'fieldType: currency' }),
  ...child('validationRules', 'ValidationRule', 'Positive', 'condition: record.Amount__c < 0\nmessage: Positive!\n'),
  ...child('recordTypes', 'RecordType', 'Large', 'label: Large\n'),
  ...top('profiles', 'Profile', 'Temp', 'label: Temp\nsystem: [apiEnabled]\n'),
  ...top('groups', 'Group', 'Friends', 'label: Friends\nmembers:\n  users: [mia@demo.example]\n'),
  ...top(
    'permissionSets',
    'PermissionSet',
    'Deals',
    'label: Deals\nsystem: [apiEnabled]\nobjects:\n  Deal__c: {create: true, read: true, update: true, delete: true}\nfields:\n  Deal__c.Amount__c: {read: true, edit: true}\n',
  ),
};

describe('API: deleting configuration', () => {
  let platform: TestPlatform;
  let ada: Api;
  let mia: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
    await deployed(DEALS);
    await give('ada', { permissionSetApiNames: ['Deals'] });
  });
  after(() => platform?.stop());

  const project = (files: Files, more: object = {}) => ({ files, package: wholePackage(files), ...more });
  const deploy = async (files: Files, more: object = { allowDestructiveChanges: true }): Promise<Body> => {
    const { status, body, text } = await ada.post('/metadata/deploy', project(files, more));
    assert.equal(status, 202, text);
    for (let i = 0; i < 400; i++) {
      const answer = await ada.get(`/metadata/deployments/${body.deploymentId}`);
      if (['SUCCEEDED', 'FAILED'].includes(answer.body.status)) return answer.body;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    return assert.fail('The deployment did not end.');
  };
  const deployed = async (files: Files, more?: object): Promise<Body> => {
    const deployment = await deploy(files, more);
    assert.equal(deployment.status, 'SUCCEEDED', JSON.stringify([deployment.error, deployment.blocked]));
    return deployment;
  };
  const refused = async (types: Record<string, string[]>, files: Files = {}): Promise<Body[]> => {
    const all = { ...files, ...destructiveManifest(types) };
    const checked = await ada.post('/metadata/validate', project(all, { allowDestructiveChanges: true }));
    assert.equal(checked.status, 200, checked.text);
    const deployment = await deploy(all);
    assert.deepEqual([deployment.status, deployment.error?.code], ['FAILED', 'PLAN_BLOCKED']);
    assert.deepEqual(checked.body.blocked, deployment.blocked, 'validate says the same');
    return deployment.blocked;
  };
  const user = async (name: string): Promise<Body> => {
    const where = encodeURIComponent(JSON.stringify({ username: `${name}@demo.example` }));
    return (await ada.get(`/data/User?where=${where}`)).body.records[0];
  };
  const give = async (name: string, fields: object): Promise<void> => {
    const path = `/data/User/${(await user(name)).id}`;
    const answer = await ada.patch(path, fields, { etag: (await ada.get(path)).headers.get('etag')! });
    assert.equal(answer.status, 200, answer.text);
  };
  const retrieve = async (types: Record<string, string[]>): Promise<Body> =>
    (
      await ada.post('/metadata/retrieve', {
        package: { version: 1, types: Object.entries(types).map(([name, members]) => ({ name, members })) },
      })
    ).body;

  it('POST /metadata/deploy without the flag: 422 DESTRUCTIVE_CHANGES_NOT_ALLOWED', async () => {
    const files = destructiveManifest({ ValidationRule: ['Deal__c.Positive'] });
    const { status, body } = await ada.post('/metadata/deploy', project(files));
    assert.deepEqual([status, body.code], [422, 'DESTRUCTIVE_CHANGES_NOT_ALLOWED']);
  });

  it('what is deleted binds nobody and is retrieved no more; deployed again it does', async () => {
    const negative = { name: 'Loss', Amount__c: -1 };
    assert.equal((await ada.post('/data/Deal__c', negative)).status, 422);
    const deployment = await deployed(destructiveManifest({ ValidationRule: ['Deal__c.Positive'] }));
    assert.deepEqual(
      deployment.changes.deletes.map(({ type, fullName, destructive, reversible }: Body) => [
        type,
        fullName,
        destructive,
        reversible,
      ]),
      [['ValidationRule', 'Deal__c.Positive', true, true]],
    );
    assert.equal((await ada.post('/data/Deal__c', negative)).status, 201);
    const { files, notFound } = await retrieve({ ValidationRule: ['Deal__c.Positive'] });
    assert.deepEqual(notFound, [{ type: 'ValidationRule', member: 'Deal__c.Positive' }]);
    assert.equal(files['objects/Deal__c/validationRules/Positive.yaml'], undefined);
    await deployed({
      ...child(
        'validationRules',
        'ValidationRule',
        'Positive',
        'condition: record.Amount__c < 0\nmessage: Positive!\n',
      ),
    });
    assert.equal((await ada.post('/data/Deal__c', negative)).status, 422);
  });

  it('somebody else deployed or deleted it since: 409 METADATA_DRIFT', async () => {
    const { metadataVersion } = await retrieve({ Group: ['*'] });
    const file = top('groups', 'Group', 'Passing', 'label: Passing\n');
    await deployed(file);
    const manifest = destructiveManifest({ Group: ['Passing'] });
    const stale = { allowDestructiveChanges: true, baseMetadataVersion: metadataVersion };
    const drifted = await ada.post('/metadata/deploy', project(manifest, stale));
    assert.deepEqual([drifted.status, drifted.body.code], [409, 'METADATA_DRIFT']);
    const { metadataVersion: seen } = await retrieve({ Group: ['*'] });
    await deployed(manifest);
    const again = await ada.post('/metadata/deploy', project(file, { baseMetadataVersion: seen }));
    assert.deepEqual([again.status, again.body.code], [409, 'METADATA_DRIFT'], again.text);
    assert.deepEqual(again.body.details.components[0].fullName, 'Passing');
  });

  it('a profile that users hold, the own one too, and a permission set', async () => {
    const { profileApiName } = await user('ada');
    const problems = await refused({ Profile: [profileApiName] });
    const [problem] = problems.filter(({ code }) => code === 'DEPENDENT_EXISTS');
    assert.ok(problem.fullName === profileApiName && problem.details.records >= 1);
    const [held] = await refused({ PermissionSet: ['Deals'] });
    assert.deepEqual([held.code, held.details], ['DEPENDENT_EXISTS', { records: 1 }]);
    await deployed(destructiveManifest({ Profile: ['Temp'] }));
  });

  it('a record type that records have', async () => {
    const created = await ada.post('/data/Deal__c', { name: 'Typed', recordTypeApiName: 'Large' });
    assert.equal(created.status, 201, created.text);
    const [problem] = await refused({ RecordType: ['Deal__c.Large'] });
    assert.deepEqual([problem.code, problem.details], ['DEPENDENT_EXISTS', { records: 1 }]);
    const path = `/data/Deal__c/${created.body.id}`;
    assert.equal((await ada.delete(path, { etag: created.headers.get('etag')! })).status, 200);
    await deployed(destructiveManifest({ RecordType: ['Deal__c.Large'] }));
    const restored = await ada.post(`/data/Deal__c/deleted/${created.body.id}/restore`, {});
    assert.ok(restored.status < 500, restored.text);
  });

  it('a group takes its shares along: a new one of its name opens nothing', async () => {
    const { body: deal } = await ada.post('/data/Deal__c', { name: 'Shared' });
    const share = await ada.post(`/data/Deal__c/${deal.id}/shares`, {
      principalType: 'group',
      principalId: 'Friends',
      access: 'read',
    });
    assert.ok(share.status < 300, share.text);
    await give('mia', { permissionSetApiNames: ['Deals'] });
    assert.equal((await mia.get(`/data/Deal__c/${deal.id}`)).status, 200);
    await deployed(destructiveManifest({ Group: ['Friends'] }));
    await deployed({ 'groups/Friends.yaml': DEALS['groups/Friends.yaml']! });
    assert.deepEqual((await ada.get(`/data/Deal__c/${deal.id}/shares`)).body.shares ?? [], []);
  });

  it('the audit trail names what was deleted', async () => {
    const { text } = await ada.get('/events/audit?operationId=metadata.deployments.create&take=50');
    assert.match(text, /ValidationRule:Deal__c\.Positive/);
  });
});
