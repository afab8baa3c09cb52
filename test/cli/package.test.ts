/** The package: packed, installed in an empty folder, and used there. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { tokenFor } from '../support/client.ts';
import { erpOf, userEnvironment } from '../support/erp.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');

/** npm with the Node that runs this test, whatever the system's own is. */
const npm = (cwd: string, ...args: string[]) =>
  run('npm', args, {
    cwd,
    env: { ...process.env, PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter) },
    timeout: 240_000,
  });

describe('the package', function () {
  this.timeout(300_000);
  let platform: TestPlatform;
  let folder: string;
  let packed: string[];

  before(async () => {
    platform = await startPlatform();
    folder = await mkdtemp(join(tmpdir(), 'erp-package-'));
    const { stdout } = await npm(root, 'pack', '--json', '--pack-destination', folder);
    // What the compiler says comes before.
    const [one] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [{ filename: string; files: { path: string }[] }];
    packed = one.files.map(({ path }) => path);
    await install(join(folder, one.filename));
  });
  after(async () => {
    await platform.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** Installs it as a user does; without a registry, its dependencies are those of the checkout. */
  const install = async (tarball: string): Promise<void> => {
    await writeFile(join(folder, 'package.json'), '{"name": "elsewhere", "private": true}');
    const args = ['install', '--prefer-offline', '--omit=optional', '--ignore-scripts', '--no-audit', '--no-fund'];
    try {
      await npm(folder, ...args, '--fetch-retries=0', tarball);
    } catch (error) {
      if (!/ENOTFOUND|ENOTCACHED|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT|E404/.test(String(error))) throw error;
      await rm(join(folder, 'node_modules'), { recursive: true, force: true });
      await mkdir(join(folder, 'node_modules', '.bin'), { recursive: true });
      await run('tar', ['xzf', tarball, '-C', folder]);
      await cp(join(folder, 'package'), join(folder, 'node_modules', 'erp-platform'), { recursive: true });
      await symlink(join(root, 'node_modules'), join(folder, 'node_modules', 'erp-platform', 'node_modules'));
      await symlink('../erp-platform/cli/bin/erp.js', join(folder, 'node_modules', '.bin', 'erp'));
    }
  };

  it('holds the compiled client and nothing of the services', () => {
    const folders = new Set(packed.map((path) => path.split('/').slice(0, 2).join('/')));
    assert.deepEqual(
      [...folders].sort(),
      [
        'LICENSE',
        'README.md',
        'cli/bin',
        'dist/cli',
        'dist/config',
        'dist/contracts',
        'dist/lib',
        'package.json',
      ].sort(),
    );
    assert.deepEqual(
      packed.filter((path) => path.endsWith('.ts')),
      [],
    );
  });

  it('runs where there are no sources', async () => {
    assert.ok((await readdir(join(folder, 'node_modules', '.bin'))).includes('erp'));
    const program = join(folder, 'node_modules', '.bin', 'erp');
    const token = await tokenFor(platform.baseUrl, 'ada@demo.example');
    const erp = erpOf(userEnvironment({ ERP_TOKEN: token, ERP_BASE_URL: platform.baseUrl }));
    const who = await erp(['whoami'], { program, cwd: folder });
    assert.equal(who.code, 0, who.stderr);
    assert.match(who.stdout, /ada@demo\.example/);
    const created = await erp(['data', 'create', 'Account', 'name=Packed', 'city=Kiel'], { program, cwd: folder });
    assert.equal(created.code, 0, created.stderr);
    const listed = await erp(['data', 'list', 'Account', '--where', 'name=Packed', '--fields', 'city'], { program });
    assert.equal(listed.stdout, 'Kiel\n');
  });
});
