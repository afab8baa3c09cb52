import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { fieldFile, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

describe('API: metadata', () => {
  let platform: TestPlatform;
  let ada: Api;
  let sam: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
  });
  after(() => platform?.stop());

  const project = (files: Record<string, string>) => ({ files, package: wholePackage(files) });
  const finished = async (deploymentId: string, caller = ada) => {
    for (let i = 0; i < 200; i++) {
      const answer = await caller.get(`/metadata/deployments/${deploymentId}`);
      assert.equal(answer.status, 200, answer.text);
      if (['SUCCEEDED', 'FAILED'].includes(answer.body.status)) return answer.body;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return assert.fail('The deployment did not end.');
  };
  const deploy = async (files: Record<string, string>) => {
    const answer = await ada.post('/metadata/deploy', project(files));
    assert.equal(answer.status, 202, answer.text);
    assert.equal(answer.headers.get('location'), `/api/v1/metadata/deployments/${answer.body.deploymentId}`);
    assert.equal(answer.body.status, 'QUEUED');
    return finished(answer.body.deploymentId);
  };
  const profileOf = async (caller: Api): Promise<string> => (await caller.get('/identity')).body.user.profileApiName;

  it('POST /metadata/deploy: a new object with access for a profile is usable at once', async () => {
    const fields: Record<string, string> = {
      Title__c: 'fieldType: text\nrequired: true',
      Amount__c: 'fieldType: currency',
      Share__c: 'fieldType: percent',
      Pieces__c: 'fieldType: integer',
      Done__c: 'fieldType: boolean',
      Due__c: 'fieldType: date',
      Seen__c: 'fieldType: dateTime',
      At__c: 'fieldType: time',
      Takes__c: 'fieldType: duration',
      Kind__c: 'fieldType: picklist\npicklist: {values: [{value: a}, {value: b}]}',
      Tags__c: 'fieldType: multiPicklist\npicklist: {values: [{value: x}, {value: y}]}',
      Account__c: 'fieldType: reference\nreferenceTo: [Account]',
      Mail__c: 'fieldType: email',
      Call__c: 'fieldType: phone',
      Site__c: 'fieldType: url',
      Notes__c: 'fieldType: longText',
      Page__c: 'fieldType: richText',
      Serial__c: 'fieldType: autoNumber\nformat: "T-{0000}"',
      Place__c: 'fieldType: geolocation',
      Home__c: 'fieldType: address',
      Raw__c: 'fieldType: json',
      Rate__c: 'fieldType: decimal',
    };
    const profile = await profileOf(sam);
    const { body: retrieved } = await ada.post('/metadata/retrieve', {
      package: { version: 1, types: [{ name: 'Profile', members: [profile] }] },
    });
    const path = `profiles/${profile}.yaml`;
    const text: string = retrieved.files[path];
    const access =
      'create: true\n    read: true\n    update: true\n    delete: false\n    viewAll: false\n    modifyAll: false';
    const withObject = text.replace(/^objects:\n/m, `objects:\n  Task__c:\n    ${access}\n`);
    const entries = Object.keys(fields).map((f) => `  Task__c.${f}:\n    read: true\n    edit: true\n`);
    const withFields = withObject.replace(/^fields:\n/m, `fields:\n${entries.join('')}`);
    const deployment = await deploy({ ...objectFiles('Task__c', fields), [path]: withFields });
    assert.equal(deployment.status, 'SUCCEEDED', JSON.stringify(deployment));

    const created = await sam.post('/data/Task__c', {
      name: 'One',
      Title__c: 'First',
      Amount__c: 12.5,
      Pieces__c: 3,
      Done__c: true,
      Due__c: '2026-11-21',
      Kind__c: 'a',
      Tags__c: ['x'],
      Raw__c: { a: 1 },
    });
    assert.equal(created.status, 201, created.text);
    assert.equal(created.body.Serial__c, 'T-0001');
    const page = await sam.get('/data/Task__c');
    assert.deepEqual(
      page.body.records.map((record: { Title__c: string }) => record.Title__c),
      ['First'],
    );
    const described = await sam.get('/objects/Task__c/describe');
    assert.equal(described.status, 200);
  });

  it('POST /metadata/retrieve → deploy → retrieve gives the same bytes and no changes', async () => {
    const pkg = {
      version: 1,
      types: [
        'CustomObject',
        'CustomField',
        'ValidationRule',
        'ValueSet',
        'Profile',
        'PermissionSet',
        'Role',
        'ExternalClient',
        'TenantSettings',
      ].map((name) => ({ name, members: ['*'] })),
    };
    const first = await ada.post('/metadata/retrieve', { package: pkg });
    assert.equal(first.status, 200, first.text);
    assert.ok(first.body.components.length > 150);
    const checked = await ada.post('/metadata/validate', { files: first.body.files, package: first.body.package });
    assert.deepEqual([checked.body.valid, checked.body.creates, checked.body.updates], [true, [], []]);
    assert.equal(checked.body.noops.length, first.body.components.length);
    assert.equal(checked.body.manifestHash, first.body.manifestHash);
    const again = await ada.post('/metadata/retrieve', { package: pkg });
    assert.equal(again.body.manifestHash, first.body.manifestHash);
    for (const path of Object.keys(first.body.files))
      if (path !== 'erp-project.yaml') assert.equal(again.body.files[path], first.body.files[path], path);
  });

  it('POST /metadata/deploy: a package with one bad file changes nothing', async () => {
    const deployment = await deploy({
      ...objectFiles('Half__c'),
      ...fieldFile('Half__c', 'Bad__c', 'fieldType: reference\nreferenceTo: [Nowhere__c]'),
    });
    assert.deepEqual([deployment.status, deployment.error.code], ['FAILED', 'PLAN_BLOCKED']);
    assert.equal((await ada.get('/objects/Half__c/describe')).status, 404);
  });

  it('POST /metadata/deploy: the same key answers the same deployment', async () => {
    const body = project(objectFiles('Twice__c'));
    const idempotencyKey = randomUUID();
    const [a, b] = [
      await ada.post('/metadata/deploy', body, { idempotencyKey }),
      await ada.post('/metadata/deploy', body, { idempotencyKey }),
    ];
    assert.equal(b.status, 202, b.text);
    assert.deepEqual(b.body, a.body);
    assert.equal(b.headers.get('idempotency-replayed'), 'true');
    const other = await ada.post('/metadata/deploy', { ...body, checkOnly: true }, { idempotencyKey });
    assert.deepEqual([other.status, other.body.code], [409, 'IDEMPOTENCY_KEY_REUSED']);
    const none = await ada.post('/metadata/deploy', body, { idempotencyKey: null });
    assert.deepEqual([none.status, none.body.code], [400, 'IDEMPOTENCY_KEY_REQUIRED']);
    await finished(a.body.deploymentId);
  });

  it('malformed projects are 400 with a pointer, never 500', async () => {
    const cases: [unknown, string][] = [
      [{}, 'PARAMETER_REQUIRED'],
      [{ files: {}, package: { version: 1, types: [] }, actor: 'me' }, 'BODY_PROPERTY_FORBIDDEN'],
      [{ files: {}, package: { version: 1, types: [{ rollbackOf: 1 }] } }, 'BODY_PROPERTY_FORBIDDEN'],
      [{ files: {}, package: { version: 1, types: [] }, colour: 1 }, 'BODY_PROPERTY_UNKNOWN'],
      [{ files: { '../x': '' }, package: { version: 1, types: [] } }, 'FILE_PATH_INVALID'],
      [{ files: { 'a.yaml': 'a: &x' }, package: { version: 1, types: [] } }, 'YAML_INVALID'],
      [{ files: {}, package: { version: 7, types: [] } }, 'PACKAGE_INVALID'],
      [{ files: 1, package: [] }, 'PARAMETER_INVALID'],
      [{ files: { a: 'x'.repeat(1024 * 1024 + 1) }, package: { version: 1, types: [] } }, 'REQUEST_TOO_LARGE'],
    ];
    for (const [body, expected] of cases)
      for (const path of ['/metadata/validate', '/metadata/deploy']) {
        const answer = await ada.post(path, body);
        assert.equal(answer.body.code, expected, `${path} ${JSON.stringify(body).slice(0, 100)}: ${answer.text}`);
        assert.equal(answer.status, expected === 'REQUEST_TOO_LARGE' ? 413 : 400);
      }
    for (const body of [{}, { package: 1 }, { package: { version: 1, types: [{ name: 'Nope', members: ['*'] }] } }])
      assert.equal((await ada.post('/metadata/retrieve', body)).status, 400);
    for (const raw of ['', '{', '[]', '"x"', '{"files":{},"files":{}}'])
      assert.equal((await ada.post('/metadata/validate', raw)).status, 400, raw);
  });

  it('refuses users who may not read or manage configuration, and hides deployments of other tenants', async () => {
    const body = project(objectFiles('Sams__c'));
    for (const [path, sent] of [
      ['/metadata/retrieve', { package: body.package }],
      ['/metadata/validate', body],
      ['/metadata/deploy', body],
    ] as const) {
      const answer = await sam.post(path, sent);
      assert.deepEqual(
        [answer.status, answer.body.code, answer.body.details.layer],
        [403, 'METADATA_PERMISSION_DENIED', 'objectPermission'],
        path,
      );
    }
    const accepted = await ada.post('/metadata/deploy', { ...body, checkOnly: true });
    await finished(accepted.body.deploymentId);
    const eve = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'eve'));
    for (const id of [accepted.body.deploymentId, randomUUID()]) {
      const answer = await eve.get(`/metadata/deployments/${id}`);
      assert.deepEqual([answer.status, answer.body.code], [404, 'DEPLOYMENT_NOT_FOUND']);
    }
    assert.ok(
      (await eve.get('/metadata/deployments?take=200')).body.records.every(
        (d: { deploymentId: string }) => d.deploymentId !== accepted.body.deploymentId,
      ),
    );
    assert.equal((await api(platform.baseUrl).post('/metadata/retrieve', {})).status, 401);
  });

  it('GET /metadata/types lists every type with the schema of its files', async () => {
    const { status, body } = await ada.get('/metadata/types');
    assert.equal(status, 200);
    assert.equal(body.nextCursor, null);
    const field = body.records.find((type: { type: string }) => type.type === 'CustomField');
    assert.equal(field.pathPattern, 'objects/{object}/fields/{apiName}.yaml');
    assert.ok(field.schema.properties.fieldType.enum.includes('currency'));
    const { body: capabilities } = await ada.get('/capabilities');
    assert.deepEqual(
      capabilities.metadata.types,
      body.records.map(({ type }: { type: string }) => type),
    );
  });
});
