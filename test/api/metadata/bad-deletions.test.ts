/** Invalid destructive manifests: the refusal names the manifest's line, and nothing is lost. */
import assert from 'node:assert/strict';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, fieldFile, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

type Files = Record<string, string>;
type Found = { code: string; path: string | null; line: number; column: number };

const PATH = 'manifest/destructiveChanges.yaml';
const list = (types: Record<string, string[]>): string =>
  Object.entries(types)
    .map(([name, members]) => `  - name: ${name}\n    members:\n${members.map((it) => `      - ${it}\n`).join('')}`)
    .join('');
const deletes = (types: Record<string, string[]>): Files => ({ [PATH]: `version: 1\ntypes:\n${list(types)}` });
const role = (name: string, more = ''): Files => ({
  [`roles/${name}.yaml`]: `type: Role\napiName: ${name}\nlabel: ${name}\n${more}`,
});
const group = (name: string, of: string): Files => ({
  [`groups/${name}.yaml`]: `type: Group\napiName: ${name}\nlabel: ${name}\nmembers:\n  roles: [${of}]\n`,
});

describe('API: invalid deletions', () => {
  let platform: TestPlatform;
  let ada: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
  });
  after(() => platform?.stop());

  const finished = async ({ status, body, text }: Answer): Promise<Answer['body']> => {
    assert.equal(status, 202, text);
    for (let i = 0; i < 400; i++) {
      const answer = await ada.get(`/metadata/deployments/${body.deploymentId}`);
      if (['SUCCEEDED', 'FAILED'].includes(answer.body.status)) return answer.body;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    return assert.fail('The deployment did not end.');
  };
  const project = (files: Files) => ({ files, package: wholePackage(files), allowDestructiveChanges: true });
  const version = async (): Promise<number> =>
    (await ada.post('/metadata/retrieve', { package: { version: 1, types: [] } })).body.metadataVersion;
  const blocked = async (files: Files): Promise<string[]> => {
    const before = await version();
    const { body: plan, text } = await ada.post('/metadata/validate', project(files));
    assert.equal(plan.valid, false, text);
    const deployment = await finished(await ada.post('/metadata/deploy', project(files)));
    assert.deepEqual([deployment.status, deployment.error.code], ['FAILED', 'PLAN_BLOCKED']);
    assert.deepEqual(deployment.blocked, plan.blocked);
    assert.equal(await version(), before);
    return plan.blocked.map(({ code, path, line, column }: Found) => `${code} ${path}:${line}:${column}`);
  };
  const succeeds = async (files: Files): Promise<Answer['body']> => {
    const deployment = await finished(await ada.post('/metadata/deploy', project(files)));
    assert.equal(deployment.status, 'SUCCEEDED', JSON.stringify([deployment.error, deployment.blocked]));
    return deployment;
  };

  it('refuses missing components, unknown types, and components shipped by the platform', async () => {
    const files = deletes({
      Role: ['Nobody', 'A.B'],
      Teapot: ['A'],
      TenantSettings: ['General'],
      CustomField: ['User.email'],
    });
    assert.deepEqual(
      (await blocked(files)).filter((found) => !found.startsWith('DEPENDENT_EXISTS')),
      [
        `SYSTEM_COMPONENT_READ_ONLY ${PATH}:12:9`,
        `SYSTEM_COMPONENT_READ_ONLY ${PATH}:15:9`,
        `MEMBER_NOT_FOUND ${PATH}:6:9`,
        `MEMBER_NOT_FOUND ${PATH}:5:9`,
        `TYPE_UNKNOWN ${PATH}:9:9`,
      ],
    );
  });

  it('refuses deletions without the flag', async () => {
    await deployOverHttp(ada, role('Unused'));
    const files = deletes({ Role: ['Unused'] });
    const body = { files, package: { version: 1, types: [] } };
    const plan = (await ada.post('/metadata/validate', body)).body;
    assert.deepEqual(
      plan.blocked.map(({ code, path, line, column }: Found) => `${code} ${path}:${line}:${column}`),
      [`DESTRUCTIVE_CHANGES_NOT_ALLOWED ${PATH}:5:9`],
    );
    const refused = await ada.post('/metadata/deploy', body);
    assert.deepEqual([refused.status, refused.body.code], [422, 'DESTRUCTIVE_CHANGES_NOT_ALLOWED']);
    await succeeds(files);
  });

  it("refuses components that are referenced or assigned, such as the caller's own profile", async () => {
    assert.deepEqual(
      await blocked(
        deletes({
          ValueSet: ['Country'],
          CustomField: ['Invoice__c.Status__c'],
          Role: ['Ceo'],
          Profile: ['Administrator'],
        }),
      ).then((found) => [...new Set(found.filter((one) => one.includes(PATH)))].sort()),
      [
        `COMPONENT_PERMISSION_DENIED ${PATH}:14:9`,
        ...[11, 14, 5, 8].map((line) => `DEPENDENT_EXISTS ${PATH}:${line}:9`),
      ],
    );
    assert.equal((await ada.get('/identity')).body.user.profileApiName, 'Administrator');
  });

  it('refuses components that the same project deploys', async () => {
    await deployOverHttp(ada, role('Both'));
    assert.deepEqual(await blocked({ ...role('Both', 'parent: Ceo\n'), ...deletes({ Role: ['Both'] }) }), [
      `PACKAGE_FILE_MISMATCH ${PATH}:5:9`,
    ]);
    assert.deepEqual(await blocked({ ...group('Uses', 'Both'), ...deletes({ Role: ['Both'] }) }), [
      `DEPENDENT_EXISTS ${PATH}:5:9`,
    ]);
  });

  it('accepts a deletion and a creation under a new name in one project', async () => {
    await deployOverHttp(ada, { ...role('Old'), ...group('Team', 'Old') });
    assert.deepEqual(await blocked({ ...role('New'), ...deletes({ Role: ['Old'] }) }), [
      `DEPENDENT_EXISTS ${PATH}:5:9`,
    ]);
    const done = await succeeds({ ...role('New'), ...group('Team', 'New'), ...deletes({ Role: ['Old'] }) });
    assert.deepEqual(
      [done.changes.creates, done.changes.updates, done.changes.deletes].map((changes) =>
        changes.map(({ fullName }: { fullName: string }) => fullName),
      ),
      [['New'], ['Team'], ['Old']],
    );
    // The same name in another case.
    await succeeds({ ...role('NEW'), ...group('Team', 'NEW'), ...deletes({ Role: ['New'] }) });
    const { body } = await ada.post('/metadata/retrieve', {
      package: { version: 1, types: [{ name: 'Role', members: ['*'] }] },
    });
    assert.ok('roles/NEW.yaml' in body.files && !('roles/New.yaml' in body.files) && !('roles/Old.yaml' in body.files));
  });

  it("accepts a new field and object beside deletions, and keeps the records' other values", async () => {
    const text = 'fieldType: text';
    await deployOverHttp(ada, objectFiles('Crate__c', { Old__c: text, Other__c: text }));
    const created = await ada.post('/data/Crate__c', { name: 'One', Old__c: 'was here', Other__c: 'stays' });
    assert.equal(created.status, 201, created.text);
    await succeeds({ ...fieldFile('Crate__c', 'New__c', text), ...deletes({ CustomField: ['Crate__c.Old__c'] }) });
    const { body } = await ada.get(`/data/Crate__c/${created.body.id}`);
    assert.deepEqual([body.New__c, body.Other__c, 'Old__c' in body], [null, 'stays', false]);
    await succeeds({ ...objectFiles('Chest__c', { Old__c: text }), ...deletes({ CustomObject: ['Crate__c'] }) });
    assert.equal((await ada.get('/data/Crate__c')).status, 404);
    assert.deepEqual((await ada.get('/data/Chest__c')).body.records, []);
    // The name of a restorable object is reserved, in any case.
    for (const name of ['Crate__c', 'CRATE__c'])
      assert.deepEqual(await blocked(objectFiles(name)), [`NAME_RESERVED objects/${name}/object.yaml:2:1`]);
  });
});
