/** Two users change the configuration at the same time: neither overwrites the other's change unseen. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

type Files = Record<string, string>;
type Types = { name: string; members: string[] }[];

const valueSet = (name: string, ...values: string[]): Files => ({
  [`valueSets/${name}.yaml`]: `type: ValueSet\napiName: ${name}\nvalues:\n${values.map((it) => `  - value: ${it}\n`).join('')}`,
});

/** The hash as a client computes it by the reference alone. */
function manifestHash(files: Files, types: Types): string {
  const hex = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');
  const order = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
  const lines = Object.keys(files)
    .filter((path) => path !== 'erp-project.yaml')
    .sort(order)
    .map((path) => `${path}\0${hex(`${files[path]!.replaceAll('\r\n', '\n').replace(/\n*$/, '')}\n`)}\n`);
  const sorted = types
    .map(
      ({ name, members }) => `{"members":${JSON.stringify([...members].sort(order))},"name":${JSON.stringify(name)}}`,
    )
    .sort((a, b) => order(JSON.parse(a).name, JSON.parse(b).name));
  const text = `${lines.join('')}package\0${hex(`{"types":[${sorted.join(',')}],"version":1}`)}\n`;
  return `sha256:${hex(text)}`;
}

describe('API: concurrent changes of configuration', () => {
  let platform: TestPlatform;
  let ada: Api;
  let sam: Api;
  let samId: string;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    await deployOverHttp(ada, {
      'permissionSets/Builder.yaml':
        'type: PermissionSet\napiName: Builder\nlabel: Builder\nsystem: [metadataManage, metadataRead]\n',
    });
    samId = (await sam.get('/identity')).body.user.id;
    const path = `/data/User/${samId}`;
    const etag = (await ada.get(path)).headers.get('etag')!;
    assert.equal((await ada.patch(path, { permissionSetApiNames: ['Builder'] }, { etag })).status, 200);
  });
  after(() => platform?.stop());

  const project = (files: Files, more: object = {}) => ({ files, package: wholePackage(files), ...more });
  const finished = async ({ status, body, text }: Answer): Promise<Answer['body']> => {
    assert.equal(status, 202, text);
    for (let i = 0; i < 400; i++) {
      const answer = await ada.get(`/metadata/deployments/${body.deploymentId}`);
      if (['SUCCEEDED', 'FAILED'].includes(answer.body.status)) return answer.body;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    return assert.fail('The deployment did not end.');
  };
  const versionNow = async (): Promise<number> =>
    (await ada.post('/metadata/retrieve', { package: { version: 1, types: [] } })).body.metadataVersion;
  /** Deploys Ada's change based on `base`, which validate and deploy refuse alike; returns the drifted components. */
  const drifted = async (files: Files, base: number) => {
    const body = project(files, { baseMetadataVersion: base });
    const answers = [await ada.post('/metadata/validate', body), await ada.post('/metadata/deploy', body)];
    for (const { status, body: refused } of answers)
      assert.deepEqual([status, refused.code], [409, 'METADATA_DRIFT'], JSON.stringify(refused));
    assert.deepEqual(answers[0]!.body.details, answers[1]!.body.details);
    const components: { changedAt: string; type: string; fullName: string }[] = answers[0]!.body.details.components;
    return components.map(({ changedAt, ...component }) => {
      assert.ok(Math.abs(Date.parse(changedAt) - Date.now()) < 60_000, changedAt);
      return component;
    });
  };

  it('reports a component changed since by another user with version, time and user', async () => {
    await deployOverHttp(ada, { ...valueSet('Colour', 'red'), ...valueSet('Shape', 'round') });
    const base = await versionNow();
    const done = await finished(await sam.post('/metadata/deploy', project(valueSet('Colour', 'red', 'green'))));
    assert.deepEqual([done.status, done.metadataVersionAfter], ['SUCCEEDED', base + 1]);
    assert.deepEqual(await drifted({ ...valueSet('Colour', 'blue'), ...valueSet('Shape', 'square', 'round') }, base), [
      { type: 'ValueSet', fullName: 'Colour', changedAtVersion: base + 1, changedById: samId },
    ]);
    // Unchanged components are no drift, nor is a change based on the current version.
    assert.equal(
      (
        await finished(
          await ada.post(
            '/metadata/deploy',
            project(valueSet('Shape', 'round', 'square'), { baseMetadataVersion: base }),
          ),
        )
      ).status,
      'SUCCEEDED',
    );
    const { body } = await ada.post('/metadata/retrieve', { package: wholePackage(valueSet('Colour')) });
    const mine = body.files['valueSets/Colour.yaml'].replace('green', 'green\n  - value: blue');
    const again = project({ 'valueSets/Colour.yaml': mine }, { baseMetadataVersion: body.metadataVersion });
    assert.equal((await finished(await ada.post('/metadata/deploy', again))).status, 'SUCCEEDED');
  });

  it('reports a component created or deleted since by another user', async () => {
    await deployOverHttp(ada, valueSet('Gone', 'a'));
    const base = await versionNow();
    await finished(await sam.post('/metadata/deploy', project(valueSet('Fresh', 'a'))));
    assert.deepEqual(await drifted(valueSet('Fresh', 'b'), base), [
      { type: 'ValueSet', fullName: 'Fresh', changedAtVersion: base + 1, changedById: samId },
    ]);
    const deletes = 'version: 1\ntypes:\n  - name: ValueSet\n    members:\n      - Gone\n';
    const deletion = {
      files: { 'manifest/destructiveChanges.yaml': deletes },
      package: { version: 1, types: [] },
      allowDestructiveChanges: true,
    };
    const done = await finished(await sam.post('/metadata/deploy', deletion));
    assert.deepEqual([done.status, done.changes.deletes.length], ['SUCCEEDED', 1], JSON.stringify(done.blocked));
    assert.deepEqual(await drifted(valueSet('Gone', 'b'), base), [
      { type: 'ValueSet', fullName: 'Gone', changedAtVersion: base + 2, changedById: samId },
    ]);
    // A deletion is a change as well: here of a component that another user has changed meanwhile.
    const now = await versionNow();
    await finished(await sam.post('/metadata/deploy', project(valueSet('Fresh', 'a', 'c'))));
    const lost = { 'manifest/destructiveChanges.yaml': deletes.replace('Gone', 'Fresh') };
    const refused = await ada.post('/metadata/deploy', { ...deletion, files: lost, baseMetadataVersion: now });
    assert.deepEqual(
      [refused.status, refused.body.code, refused.body.details?.components[0].fullName],
      [409, 'METADATA_DRIFT', 'Fresh'],
    );
  });

  it('reports no drift for a component that equals its retrieved version again, whatever restored it', async function () {
    this.timeout(60_000);
    const mine = (base: number) => project(valueSet('Undone', 'mine'), { baseMetadataVersion: base });
    await deployOverHttp(ada, { ...valueSet('Undone', 'a'), ...valueSet('Other', 'a') });
    const base = await versionNow();
    const change = await finished(await sam.post('/metadata/deploy', project(valueSet('Undone', 'a', 'b'))));
    assert.equal((await drifted(valueSet('Undone', 'mine'), base)).length, 1);
    // Rolled back.
    const undone = await finished(
      await ada.post('/metadata/deploy', { rollback: { deploymentId: change.deploymentId } }),
    );
    assert.equal(undone.status, 'SUCCEEDED', JSON.stringify(undone.error));
    assert.equal((await ada.post('/metadata/validate', mine(base))).status, 200);
    // Changed twice by hand, together with another one, which stays changed.
    const both = { ...valueSet('Undone', 'c'), ...valueSet('Other', 'b') };
    await finished(await sam.post('/metadata/deploy', project(both)));
    assert.equal((await drifted(valueSet('Undone', 'mine'), base)).length, 1);
    await finished(await sam.post('/metadata/deploy', project(valueSet('Undone', 'a'))));
    assert.deepEqual(
      (await drifted({ ...valueSet('Undone', 'mine'), ...valueSet('Other', 'mine') }, base)).map((c) => c.fullName),
      ['Other'],
    );
    // Based on the version in between it is a change again.
    assert.equal((await drifted(valueSet('Undone', 'mine'), base + 1)).length, 1);
    const done = await finished(await ada.post('/metadata/deploy', mine(base)));
    assert.deepEqual([done.status, done.changes.updates.length], ['SUCCEEDED', 1], JSON.stringify(done.error));
  });

  it('applies one of two simultaneous deployments of one version, completely', async function () {
    this.timeout(60_000);
    for (let round = 0; round < 4; round++) {
      const name = `Race${round}`;
      await deployOverHttp(ada, valueSet(name, 'a'));
      const base = await versionNow();
      const values = [
        ['a', 'ada'],
        ['a', 'sam'],
      ];
      const ends = await Promise.all(
        [ada, sam].map(async (caller, i) => {
          const body = project(valueSet(name, ...values[i]!), { baseMetadataVersion: base });
          const answer = await caller.post('/metadata/deploy', body);
          if (answer.status === 409) return answer.body.code;
          const { status, error } = await finished(answer);
          return status === 'SUCCEEDED' ? status : error.code;
        }),
      );
      assert.deepEqual([...ends].sort(), ['METADATA_DRIFT', 'SUCCEEDED']);
      const { body } = await ada.post('/metadata/retrieve', { package: wholePackage(valueSet(name)) });
      const winner = values[ends.indexOf('SUCCEEDED')]!;
      assert.deepEqual(body.files[`valueSets/${name}.yaml`], valueSet(name, ...winner)[`valueSets/${name}.yaml`]);
      assert.equal(body.metadataVersion, base + 1);
    }
  });

  it('applies the reviewed plan or none', async () => {
    await deployOverHttp(ada, valueSet('Plan', 'a'));
    const body = project(valueSet('Plan', 'a', 'b'));
    const { planHash } = (await ada.post('/metadata/validate', body)).body;
    assert.equal((await sam.post('/metadata/validate', body)).body.planHash, planHash, 'the same for everybody');
    const other = project({ ...valueSet('Plan', 'a', 'c') });
    const refused = await ada.post('/metadata/deploy', { ...other, expectedPlanHash: planHash });
    const actual = (await ada.post('/metadata/validate', other)).body.planHash;
    assert.deepEqual([refused.status, refused.body.code], [409, 'PLAN_CHANGED']);
    assert.deepEqual(refused.body.details, { expected: planHash, actual });
    // Another user's change of another component leaves the plan unchanged, that of the same one does not.
    await finished(await sam.post('/metadata/deploy', project(valueSet('Elsewhere', 'a'))));
    assert.equal((await ada.post('/metadata/validate', body)).body.planHash, planHash);
    await finished(await sam.post('/metadata/deploy', project(valueSet('Plan', 'a', 'z'))));
    await finished(await sam.post('/metadata/deploy', project(valueSet('Plan', 'a'))));
    const late = await ada.post('/metadata/deploy', { ...body, expectedPlanHash: planHash });
    assert.deepEqual([late.status, late.body.code], [409, 'PLAN_CHANGED'], 'it was reviewed before that');
    const fresh = (await ada.post('/metadata/validate', body)).body.planHash;
    const done = await finished(await ada.post('/metadata/deploy', { ...body, expectedPlanHash: fresh }));
    assert.deepEqual([done.status, done.planHash], ['SUCCEEDED', fresh]);
    const misspelt = await ada.post('/metadata/deploy', { ...body, expectedPlanHash: 'sha256:abc' });
    assert.deepEqual([misspelt.status, misspelt.body.errors[0].pointer], [400, '/expectedPlanHash']);
  });

  it('every client computes the same manifestHash: retrieve, validate, deploy, the deployment, and the client', async () => {
    const types = ['CustomObject', 'CustomField', 'Role', 'StateModel', 'Dashboard', 'Profile'];
    const pkg = { version: 1, types: types.map((name) => ({ name, members: ['*'] })) };
    const { body: retrieved } = await ada.post('/metadata/retrieve', { package: pkg });
    const { files } = retrieved;
    const back = { files, package: retrieved.package, checkOnly: true };
    const { checkOnly: _, ...validation } = back;
    const accepted = await ada.post('/metadata/deploy', back);
    const windows = Object.fromEntries(
      Object.entries<string>(files).map(([path, text]) => [path, text.replaceAll('\n', '\r\n')]),
    );
    const hashes = [
      manifestHash(files, retrieved.package.types),
      (await ada.post('/metadata/validate', validation)).body.manifestHash,
      (await ada.post('/metadata/validate', { files })).body.manifestHash,
      (await ada.post('/metadata/validate', { ...validation, files: windows })).body.manifestHash,
      accepted.body.manifestHash,
      (await finished(accepted)).manifestHash,
      /^manifestHash: (.*)$/m.exec(files['erp-project.yaml'])?.[1],
    ];
    assert.deepEqual(
      hashes,
      hashes.map(() => retrieved.manifestHash),
    );
  });
});
