/** The configuration of a business of realistic size, by `erp` alone: retrieved, changed, deployed, rolled back. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { keptErpOf, userEnvironment } from '../support/erp.ts';
import { BUSINESS, changedComponents, filesOf, generateProject } from '../support/generated-project.ts';
import { tokenOfNewTenant } from '../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

describe('erp metadata with the configuration of a business', function () {
  this.timeout(300_000);
  let platform: TestPlatform;
  let erp: (...args: string[]) => Promise<string>;
  let folder: string;

  before(async () => {
    platform = await startPlatform({ seed: false });
    const token = await tokenOfNewTenant(platform);
    folder = mkdtempSync(join(tmpdir(), 'erp-business-'));
    const run = keptErpOf(userEnvironment({ ERP_TOKEN: token, ERP_BASE_URL: platform.baseUrl }));
    erp = async (...args) => {
      const { code, stdout, stderr } = await run(['metadata', ...args], { cwd: folder });
      assert.equal(code, 0, `erp metadata ${args.join(' ')}\n${stdout.slice(-3_000)}${stderr.slice(-3_000)}`);
      return stdout;
    };
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await platform?.stop();
  });

  const read = (path: string): string => readFileSync(join(folder, path), 'utf8');
  const write = (files: Record<string, string>): void => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
  };
  const isThere = (files: Record<string, string>): void => {
    for (const [path, text] of Object.entries(files)) assert.equal(read(path), text, path);
  };
  /** Deploys the folder and returns the id of the deployment. */
  const deployed = async (): Promise<string> => {
    const { deploymentId, status } = JSON.parse(await erp('deploy', '--yes', '--wait', '--json'));
    assert.equal(status, 'SUCCEEDED');
    return deploymentId;
  };

  it('retrieves, edits, compares, validates, deploys and rolls back', async () => {
    const project = generateProject(BUSINESS, 'erp');
    const files = filesOf(project);
    const count = Object.keys(files).length;
    await erp('retrieve', '--all');
    write(files);
    assert.match(
      await erp('validate'),
      new RegExp(`^${count.toLocaleString('en')} to create|^${count} to create`, 'm'),
    );
    await deployed();
    assert.match(await erp('diff'), /^No differences\.$/m);
    await erp('retrieve');
    isThere(files);
    await erp('hash', '--check');

    const edits = filesOf(changedComponents(project, 120, 'erp'));
    write(edits);
    assert.equal((await erp('diff', '--name-only')).trim().split('\n').length, 120);
    assert.match(await erp('validate'), /^0 to create, 120 to update, 0 to delete/m);
    const deploymentId = await deployed();
    await erp('retrieve');
    isThere({ ...files, ...edits });

    await erp('rollback', deploymentId, '--yes', '--wait');
    await erp('retrieve', '--force');
    isThere(files);
    await erp('hash', '--check');
  });
});
