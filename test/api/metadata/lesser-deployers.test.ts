/** Permissions for configuration and deployments, and that no detour exceeds them. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import {
  deploymentEnded,
  deployOverHttp,
  fieldFile,
  objectFiles,
  wholePackage,
} from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

type Files = Record<string, string>;

const set = (name: string, body: string): Files => ({
  [`permissionSets/${name}.yaml`]: `type: PermissionSet\napiName: ${name}\nlabel: ${name}\n${body}`,
});
const deletes = (type: string, ...members: string[]): Files => ({
  'manifest/destructiveChanges.yaml': `version: 1\ntypes:\n  - name: ${type}\n    members: [${members.join(', ')}]\n`,
});
const valueSet = (name: string, ...values: string[]): Files => ({
  [`valueSets/${name}.yaml`]: `type: ValueSet\napiName: ${name}\nvalues: [${values.map((it) => `{value: ${it}}`).join(', ')}]\n`,
});

/** Ada administers; Sam manages configuration and holds little; Fay reads configuration; Mia holds neither; Eve is elsewhere. */
describe('API: users who manage configuration', () => {
  let platform: TestPlatform;
  const people: Record<string, Api> = {};
  let ada: Api;
  let sam: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    for (const name of ['ada', 'sam', 'fay', 'mia', 'eve'])
      people[name] = api(platform.baseUrl, await tokenFor(platform.baseUrl, name));
    ({ ada, sam } = people as { ada: Api; sam: Api });
    await deployOverHttp(ada, {
      ...set('Builder', 'system: [metadataManage]\n'),
      ...set('Looker', 'system: [metadataRead]\n'),
    });
    await assign('sam', 'Builder');
    await assign('fay', 'Looker');
  });
  after(() => platform?.stop());

  const assign = async (name: string, ...permissionSetApiNames: string[]): Promise<void> => {
    const path = `/data/User/${(await people[name]!.get('/identity')).body.user.id}`;
    const etag = (await ada.get(path)).headers.get('etag')!;
    assert.equal((await ada.patch(path, { permissionSetApiNames }, { etag })).status, 200);
  };

  const project = (files: Files, more: object = {}) => ({ files, package: wholePackage(files), ...more });
  const deployed = async (by: Api, body: object): Promise<Answer['body']> =>
    deploymentEnded(ada, await by.post('/metadata/deploy', body));
  const succeeded = async (by: Api, body: object): Promise<string> => {
    const { status, deploymentId, error, blocked } = await deployed(by, body);
    assert.equal(status, 'SUCCEEDED', JSON.stringify([error, blocked]));
    return deploymentId;
  };
  /** The codes of the problems of Sam's project, for validate and for its deployment. */
  const refusals = async (body: object): Promise<string[]> => {
    const checked = await sam.post('/metadata/validate', body);
    assert.equal(checked.status, 200, checked.text);
    const { status, blocked } = await deployed(sam, body);
    assert.equal(status, 'FAILED');
    assert.deepEqual(checked.body.blocked, blocked);
    return [...new Set<string>(blocked.map(({ code }: { code: string }) => code))].sort();
  };
  const told = ({ status, body }: Answer): unknown[] => [status, body.code, body.details ?? null];

  it('need the permission for every operation, before anything is looked up', async () => {
    const body = project(valueSet('Needs', 'a'));
    const deploymentId = await succeeded(ada, body);
    const validationId = await succeeded(ada, { ...body, checkOnly: true });
    const reading: [path: string, sent: object][] = [
      ['/metadata/retrieve', { package: body.package }],
      ['/metadata/validate', body],
    ];
    const managing: [path: string, sent: object][] = [
      ['/metadata/deploy', body],
      ['/metadata/deploy', { ...body, checkOnly: true }],
      ...[validationId, randomUUID()].map((id): [string, object] => [
        '/metadata/deploy',
        { quickDeploy: { validationId: id } },
      ]),
      ...[deploymentId, randomUUID()].map((id): [string, object] => [
        '/metadata/deploy',
        { rollback: { deploymentId: id } },
      ]),
      ...[deploymentId, randomUUID(), 'x'].map((id): [string, object] => [`/metadata/deployments/${id}/cancel`, {}]),
    ];
    for (const [path, sent] of reading) assert.equal((await people['fay']!.post(path, sent)).status, 200, path);
    for (const [who, requests] of [
      ['fay', managing],
      ['mia', [...reading, ...managing]],
    ] as const)
      for (const [path, sent] of requests) {
        const { status, body: refused } = await people[who]!.post(path, sent);
        assert.deepEqual([status, refused.code], [403, 'METADATA_PERMISSION_DENIED'], `${who} ${path}`);
      }
    const seen = (await people['mia']!.get(`/metadata/deployments/${deploymentId}`)).body;
    assert.deepEqual([seen.status, seen.changes.creates, seen.blocked], ['SUCCEEDED', [], []]);
    assert.equal((await people['fay']!.get(`/metadata/deployments/${deploymentId}`)).body.changes.creates.length, 1);
  });

  it('need the scope as well', async () => {
    const data = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada', 'openid data:read data:write'));
    const setup = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada', 'openid setup:read'));
    const body = project(valueSet('Scopes', 'a'));
    const pkg = { package: body.package };
    for (const [caller, answers] of [
      [data, [403, 403, 403, 403, 403]],
      [setup, [200, 403, 403, 403, 200]],
    ] as const)
      assert.deepEqual(
        [
          await caller.post('/metadata/retrieve', pkg),
          await caller.post('/metadata/validate', body),
          await caller.post('/metadata/deploy', { rollback: { deploymentId: randomUUID() } }),
          await caller.post(`/metadata/deployments/${randomUUID()}/cancel`, {}),
          await caller.get('/metadata/types'),
        ].map(({ status }) => status),
        answers,
      );
  });

  it('find deployments of another tenant as little as unknown ones', async () => {
    const body = project(valueSet('Tenants', 'a'));
    const deploymentId = await succeeded(ada, body);
    const validationId = await succeeded(ada, { ...project(valueSet('Tenants', 'b')), checkOnly: true });
    const eve = people['eve']!;
    const without = (answer: Answer, id: string) => JSON.stringify(told(answer)).replaceAll(id, 'ID');
    for (const [known, ask] of [
      [deploymentId, (id: string) => eve.get(`/metadata/deployments/${id}`)],
      [deploymentId, (id: string) => eve.post(`/metadata/deployments/${id}/cancel`, {})],
      [deploymentId, (id: string) => eve.post('/metadata/deploy', { rollback: { deploymentId: id } })],
      [validationId, (id: string) => eve.post('/metadata/deploy', { quickDeploy: { validationId: id } })],
    ] as const) {
      const unknown = randomUUID();
      const answer = without(await ask(known), known);
      assert.equal(answer, without(await ask(unknown), unknown));
      assert.match(answer, /NOT_FOUND/);
    }
  });

  it("can apply, cancel and roll back another user's validation", async () => {
    const validation = await succeeded(ada, project(valueSet('Shared', 'a'), { checkOnly: true }));
    const done = await deployed(sam, { quickDeploy: { validationId: validation } });
    assert.deepEqual([done.status, done.kind], ['SUCCEEDED', 'quickDeploy'], JSON.stringify(done.error));
    const undone = await deployed(sam, { rollback: { deploymentId: done.deploymentId } });
    assert.deepEqual([undone.status, undone.kind], ['SUCCEEDED', 'rollback'], JSON.stringify(undone.blocked));
    assert.equal((await ada.post('/metadata/validate', project(valueSet('Shared', 'a')))).body.creates.length, 1);
  });

  it('cancel their own deployments, and those of others only with manageAccess', async () => {
    const body = project(valueSet('Mine', 'a'), { checkOnly: true });
    const of = async (who: Api): Promise<Answer> => who.post('/metadata/deploy', body);
    const cancel = (who: Api, { body: { deploymentId } }: Answer): Promise<Answer> =>
      who.post(`/metadata/deployments/${deploymentId}/cancel`, {});
    const adas = await of(ada);
    const refused = await cancel(sam, adas);
    assert.deepEqual(told(refused), [
      403,
      'METADATA_PERMISSION_DENIED',
      { layer: 'objectPermission', permission: 'manageAccess' },
    ]);
    assert.equal((await deploymentEnded(ada, adas)).status, 'SUCCEEDED');
    assert.deepEqual(told(await cancel(sam, adas)), told(refused), 'also of one that has ended');
    for (const who of [sam, ada]) {
      const sams = await of(sam);
      const { status, body: answer } = await cancel(who, sams);
      assert.ok(status === 202 || answer.code === 'DEPLOYMENT_NOT_CANCELABLE', answer.code);
      await deploymentEnded(ada, sams);
    }
  });

  it('see names of components and reasons only if they can read configuration', async () => {
    const queued = await ada.post('/metadata/deploy', project(valueSet('Hushed', 'a'), { checkOnly: true }));
    await ada.post(`/metadata/deployments/${queued.body.deploymentId}/cancel`, { reason: 'Hushed is wrong.' });
    await deploymentEnded(ada, queued);
    // Of two simultaneous deployments of one version, one comes too late.
    let failed: string | undefined;
    for (let round = 0; failed === undefined && round < 10; round++) {
      await succeeded(ada, project(valueSet('Hushed', `a${round}`)));
      const { metadataVersion: baseMetadataVersion } = (
        await ada.post('/metadata/retrieve', { package: { version: 1, types: [] } })
      ).body;
      const sent = await Promise.all(
        ['b', 'c'].map((value) =>
          ada.post('/metadata/deploy', project(valueSet('Hushed', value + round), { baseMetadataVersion })),
        ),
      );
      for (const accepted of sent.filter(({ status }) => status === 202)) {
        const ended = await deploymentEnded(ada, accepted);
        if (ended.error?.code === 'METADATA_DRIFT') failed = ended.deploymentId;
      }
    }
    const mia = people['mia']!;
    for (const path of [
      '/metadata/deployments',
      ...[failed, queued.body.deploymentId].map((id) => `/metadata/deployments/${id}`),
    ]) {
      assert.match((await people['fay']!.get(path)).text, /Hushed/);
      assert.doesNotMatch((await mia.get(path)).text, /Hushed/);
    }
  });

  it("gain no rights by other users' validations or deployments", async () => {
    const rights = (system: string) => project(set('Auditor', `system: [${system}]\n`));
    const validation = await succeeded(ada, { ...rights('viewAllData, viewAudit'), checkOnly: true });
    const quick = await sam.post('/metadata/deploy', { quickDeploy: { validationId: validation } });
    assert.deepEqual(told(quick), [
      409,
      'QUICK_DEPLOY_NOT_ELIGIBLE',
      { reason: 'PERMISSION', problems: ['COMPONENT_PERMISSION_DENIED'] },
    ]);
    await succeeded(ada, rights('viewAllData, viewAudit'));
    const taken = await succeeded(ada, rights('viewAudit'));
    const back = await deployed(sam, { rollback: { deploymentId: taken } });
    assert.deepEqual([back.status, back.error.code], ['FAILED', 'PLAN_BLOCKED'], 'the right would come back');
    assert.deepEqual(
      [...new Set(back.blocked.map(({ code }: { code: string }) => code))],
      ['COMPONENT_PERMISSION_DENIED'],
    );
    const { body } = await ada.post('/metadata/retrieve', {
      package: { version: 1, types: [{ name: 'PermissionSet', members: ['Auditor'] }] },
    });
    assert.doesNotMatch(body.files['permissionSets/Auditor.yaml'], /viewAllData/);
  });

  it('remove by a deletion only what they could remove by a change', async () => {
    const destructive = { package: { version: 1, types: [] }, allowDestructiveChanges: true };
    await succeeded(ada, project(set('Doomed', 'system: [viewAudit]\n')));
    assert.deepEqual(await refusals({ ...destructive, files: deletes('PermissionSet', 'Doomed') }), [
      'COMPONENT_PERMISSION_DENIED',
    ]);
    await succeeded(ada, project({ ...objectFiles('Vault__c', { Code__c: 'fieldType: text' }) }));
    assert.equal((await ada.post('/data/Vault__c', { name: 'One', Code__c: 'secret' })).status, 201);
    for (const files of [deletes('CustomObject', 'Vault__c'), deletes('CustomField', 'Vault__c.Code__c')]) {
      const body = { ...destructive, files };
      assert.ok((await refusals(body)).includes('COMPONENT_PERMISSION_DENIED'));
      const { text } = await sam.post('/metadata/validate', body);
      assert.doesNotMatch(text, /"records":\d/, 'no number of records that are not theirs');
    }
    assert.equal((await ada.get('/data/Vault__c')).body.records[0].Code__c, 'secret');
  });

  it('restore no records, values and rights that another user deleted', async () => {
    const all = '{create: true, read: true, update: true, delete: true, viewAll: true, modifyAll: true}';
    await succeeded(ada, project(objectFiles('Post__c', { Salary__c: 'fieldType: text' })));
    await succeeded(
      ada,
      project({
        ...objectFiles('Pay__c', { Sum__c: 'fieldType: text' }, 'sharingDefault: private\n'),
        ...set(
          'PayAll',
          `objects:\n  Pay__c: ${all}\n  Post__c: ${all}\nfields:\n  Pay__c.Sum__c: {read: true, edit: true}\n` +
            '  Post__c.Salary__c: {read: true, edit: true}\n',
        ),
      }),
    );
    await assign('sam', 'Builder', 'PayAll');
    assert.equal((await ada.post('/data/Post__c', { name: 'One', Salary__c: 'much' })).status, 201);
    assert.equal((await sam.post('/data/Pay__c', { name: 'One', Sum__c: 'more' })).status, 201);
    const deleted = (files: Files, more: Files = {}) =>
      succeeded(ada, project(more, { files: { ...files, ...more }, allowDestructiveChanges: true }));
    const none = `objects:\n  Post__c: ${all}\n`;
    const both = {
      'manifest/destructiveChanges.yaml':
        'version: 1\ntypes:\n  - {name: CustomObject, members: [Pay__c]}\n  - {name: CustomField, members: [Post__c.Salary__c]}\n',
    };
    const taken = await deleted(both, set('PayAll', none));
    const denied = ({ status, blocked }: Answer['body']): unknown[] => [
      status,
      [...new Set(blocked.map(({ code }: { code: string }) => code))],
      [...new Set(blocked.map(({ fullName }: { fullName: string }) => fullName))].sort(),
    ];
    for (const checkOnly of [true, false])
      assert.deepEqual(denied(await deployed(sam, { rollback: { deploymentId: taken, checkOnly } })), [
        'FAILED',
        ['COMPONENT_PERMISSION_DENIED'],
        ['PayAll', 'Pay__c', 'Pay__c.Sum__c', 'Post__c.Salary__c'],
      ]);
    assert.equal((await sam.get('/data/Pay__c')).status, 404);
    const back = await succeeded(ada, { rollback: { deploymentId: taken } });
    assert.equal((await sam.get('/data/Pay__c')).body.records[0].Sum__c, 'more');

    const again = await succeeded(ada, { rollback: { deploymentId: back } });
    assert.deepEqual(denied(await deployed(sam, { rollback: { deploymentId: again } }))[0], 'FAILED');
    const vault = objectFiles('Bare__c', { Code__c: 'fieldType: text' });
    await succeeded(ada, project(vault));
    const bare = await deleted(deletes('CustomObject', 'Bare__c'));
    assert.deepEqual(denied(await deployed(sam, { rollback: { deploymentId: bare } })), [
      'FAILED',
      ['COMPONENT_PERMISSION_DENIED'],
      ['Bare__c', 'Bare__c.Code__c'],
    ]);
    const checked = await deployed(ada, { rollback: { deploymentId: bare, checkOnly: true } });
    assert.equal(checked.status, 'SUCCEEDED', JSON.stringify(checked.blocked));
    const quick = await sam.post('/metadata/deploy', { quickDeploy: { validationId: checked.deploymentId } });
    assert.equal(quick.body.code, 'QUICK_DEPLOY_NOT_ELIGIBLE');
    await assign('sam', 'Builder');
  });

  it('learn from no plan the content of records that are hidden from them', async () => {
    await succeeded(ada, project(objectFiles('Hidden__c', { Code__c: 'fieldType: text\nlength: 100' })));
    const plans = async () => {
      const found: string[] = [];
      for (const more of [
        'fieldType: text\nlength: 3',
        'fieldType: text\nunique: true',
        'fieldType: text\nrequired: true',
      ]) {
        const body = project(fieldFile('Hidden__c', 'Code__c', more));
        const { body: plan } = await sam.post('/metadata/validate', { ...body, allowDestructiveChanges: true });
        found.push(JSON.stringify([plan.valid, plan.blocked, plan.warnings, plan.updates, plan.planHash]));
      }
      return found;
    };
    const empty = await plans();
    for (const Code__c of ['a long secret', 'a long secret', null])
      assert.equal((await ada.post('/data/Hidden__c', { name: 'One', Code__c })).status, 201);
    assert.deepEqual(await plans(), empty);
  });
});
