import assert from 'node:assert/strict';
import { COMPONENT_TYPES } from '../../../lib/schema/snapshot.ts';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { BUSINESS, filesOf, generateProject } from '../../support/generated-project.ts';
import {
  createTenantOverHttp,
  deployOverHttp,
  fieldFile,
  objectFiles,
  retrieveAll,
  wholePackage,
} from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

describe('API: the configuration of a tenant in another one', function () {
  this.timeout(180_000);
  let platform: TestPlatform;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
  });
  after(() => platform?.stop());

  /** Deploys a tenant's whole configuration to a new one, and compares both. */
  async function moved(from: Api): Promise<{ files: Record<string, string>; to: Api }> {
    const first = await retrieveAll(from);
    const to = await createTenantOverHttp(platform);
    await deployOverHttp(to, first.files);
    const second = await retrieveAll(to);
    assert.deepEqual(Object.keys(second.files).sort(), Object.keys(first.files).sort());
    assert.deepEqual(second, first);
    const again = await to.post('/metadata/validate', { files: first.files, package: wholePackage(first.files) });
    assert.equal(again.status, 200, again.text);
    const { creates, updates, deletes, noops } = again.body;
    const changed = [creates, updates, deletes].map((list) => list.length);
    assert.deepEqual([changed, noops.length], [[0, 0, 0], Object.keys(wholeComponents(first.files)).length]);
    return { files: first.files, to };
  }

  it('is the same after retrieving and deploying: the demo tenant', async () => {
    const ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    const { files, to } = await moved(ada);
    assert.ok(Object.keys(files).length > 200);
    const [first, second] = await Promise.all(
      [ada, to].map(async (tenant) => {
        const { body } = await tenant.post('/metadata/retrieve', { package: EVERYTHING });
        return { hash: body.manifestHash, package: body.package, files: { ...body.files, 'erp-project.yaml': '' } };
      }),
    );
    assert.deepEqual(second, first);
  });

  it('is the same after retrieving in parts and deploying in one: a real business', async () => {
    const business = await createTenantOverHttp(platform);
    const project = filesOf(generateProject(BUSINESS, 'wiped'));
    await deployOverHttp(business, project);
    const { files } = await moved(business);
    for (const [path, text] of Object.entries(project)) assert.equal(files[path], text, path);
  });

  it('contains no name that the platform does not ship', async () => {
    const admin = await createTenantOverHttp(platform);
    const files = {
      ...objectFiles('Supplier'),
      ...objectFiles('Account'),
      ...fieldFile('Account', 'mood', 'fieldType: text'),
    };
    const { body } = await admin.post('/metadata/validate', { files, package: wholePackage(files) });
    const problems = body.blocked.map(({ code, fullName }: { code: string; fullName: string }) => [code, fullName]);
    assert.deepEqual(problems, [
      ['NAME_INVALID', 'Supplier'],
      ['NAME_INVALID', 'Account.mood'],
    ]);
  });
});

const EVERYTHING = { version: 1, types: COMPONENT_TYPES.map((name) => ({ name, members: ['*'] })) };

const wholeComponents = (files: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(files).filter(([path]) => path.includes('/') && !path.startsWith('manifest/')));
