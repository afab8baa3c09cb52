/** The package: packed, installed in an empty folder, and used there. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { tokenFor } from '../support/client.ts';
import { erpOf, userEnvironment } from '../support/erp.ts';
import { exampleNamed } from '../support/examples.ts';
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

/** `npm install --omit=optional FILE` where nothing can be fetched. */
const WITHOUT_REGISTRY = `
npm() {
  [ "$1" = install ] || { command npm "$@"; return; }
  rm -rf node_modules package
  mkdir -p node_modules/.bin
  tar xzf "$3"
  mv package node_modules/erp-platform
  ln -s "$ROOT/node_modules" node_modules/erp-platform/node_modules
  ln -s ../erp-platform/cli/bin/erp.js node_modules/.bin/erp
}
`;

describe('the package', function () {
  this.timeout(300_000);
  let platform: TestPlatform;
  let folder: string;
  let packed: string[];
  /** What its installation has printed. */
  let installed: string;

  before(async () => {
    platform = await startPlatform();
    folder = await mkdtemp(join(tmpdir(), 'erp-package-'));
    const { stdout } = await npm(root, 'pack', '--json', '--pack-destination', folder);
    // What the compiler says comes before.
    const [one] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [{ filename: string; files: { path: string }[] }];
    packed = one.files.map(({ path }) => path);
    installed = await install(one.filename);
  });
  after(async () => {
    await platform.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** Installs it by the commands that its page prints; without a registry, its dependencies are those of the checkout. */
  const install = async (file: string): Promise<string> => {
    const [, version = ''] = /^erp-platform-(.+)\.tgz$/.exec(file) ?? [];
    const block = exampleNamed('docs/reference/cli.md#starting-it').replace('<version>', version);
    const env = {
      ...process.env,
      ROOT: root,
      PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
      npm_config_prefer_offline: 'true',
      npm_config_ignore_scripts: 'true',
      npm_config_audit: 'false',
      npm_config_fetch_retries: '0',
    };
    const shell = (text: string) => run('bash', ['--norc', '-ec', text], { cwd: folder, env, timeout: 240_000 });
    try {
      return (await shell(block)).stdout;
    } catch (error) {
      if (!/ENOTFOUND|ENOTCACHED|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT|E404/.test(String(error))) throw error;
      return (await shell(WITHOUT_REGISTRY + block)).stdout;
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
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
    assert.ok(installed.endsWith(`\n${version}\n`), installed);
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
