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

/** npm with the Node that runs this test, independent of the system's own. */
const npm = (cwd: string, ...args: string[]) =>
  run('npm', args, {
    cwd,
    env: { ...process.env, PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter) },
    timeout: 240_000,
  });

/** `npm install FILE` without network access. */
const WITHOUT_REGISTRY = `
npm() {
  [ "$1" = install ] || { command npm "$@"; return; }
  rm -rf node_modules package
  mkdir -p node_modules/.bin node_modules/@erp-platform
  tar xzf "$2"
  mv package node_modules/@erp-platform/cli
  ln -s "$ROOT/node_modules" node_modules/@erp-platform/cli/node_modules
  ln -s ../@erp-platform/cli/bin/erp.js node_modules/.bin/erp
}
`;
/** Maximum size of the installed command line client; the platform takes 660 MB. */
const PACKED_MAX_KIB = 1_024;

describe('the package', function () {
  this.timeout(300_000);
  let platform: TestPlatform;
  let folder: string;
  let packed: { filename: string; size: number; files: { path: string }[] };
  /** The output of its installation. */
  let installed: string;

  before(async () => {
    platform = await startPlatform();
    folder = await mkdtemp(join(tmpdir(), 'erp-package-'));
    const { stdout } = await npm(join(root, 'cli'), 'pack', '--json', '--pack-destination', folder);
    // The compiler's output comes before.
    [packed] = JSON.parse(stdout.slice(stdout.indexOf('[')));
    installed = await install(packed.filename);
  });
  after(async () => {
    await platform.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** Installs it with the commands of its page; without a registry, its dependencies are those of the checkout. */
  const install = async (file: string): Promise<string> => {
    const [, version = ''] = /^erp-platform-cli-(.+)\.tgz$/.exec(file) ?? [];
    const block = exampleNamed('docs/reference/cli.md#starting-it 2').replace('<version>', version);
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

  it('contains the compiled client and no services', () => {
    const paths = packed.files.map(({ path }) => path);
    const folders = new Set(paths.map((path) => path.split('/').slice(0, 2).join('/')));
    assert.deepEqual(
      [...folders].sort(),
      [
        'LICENSE',
        'README.md',
        'bin/erp.js',
        'dist/cli',
        'dist/client',
        'dist/contracts',
        'dist/lib',
        'dist/web',
        'package.json',
      ].sort(),
    );
    assert.deepEqual(
      paths.filter((path) => path.startsWith('dist/web/')),
      ['dist/web/shared/rows.js'],
    );
    assert.deepEqual(
      paths.filter((path) => path.endsWith('.ts')),
      [],
    );
    assert.ok(packed.size < PACKED_MAX_KIB * 1024, `${packed.size} bytes`);
  });

  it('declares the imports of its files, and nothing else', async () => {
    const own = JSON.parse(await readFile(join(root, 'cli', 'package.json'), 'utf8'));
    const imported = new Set<string>();
    for (const { path } of packed.files.filter((file) => file.path.startsWith('dist/')))
      for (const [, name = ''] of (await readFile(join(root, 'cli', path), 'utf8')).matchAll(
        /^(?:import|export|\}) .*\bfrom '((?!node:)[^.'][^']*)';$/gm,
      ))
        imported.add(
          name
            .split('/')
            .slice(0, name.startsWith('@') ? 2 : 1)
            .join('/'),
        );
    // Its types come in a package of another name.
    imported.add('commander');
    assert.deepEqual(Object.keys(own.dependencies).sort(), [...imported].sort());
  });

  it('is named by the capabilities, and its name is unused by other packages', async () => {
    const own = JSON.parse(await readFile(join(root, 'cli', 'package.json'), 'utf8'));
    const capabilities = await (await fetch(`${platform.baseUrl}/api/v1/capabilities`)).json();
    assert.equal((capabilities as { cli: { name: string } }).cli.name, own.name);
    assert.match(own.name, /^@erp-platform\//);
    // In the checkout npx finds no command that is missing elsewhere.
    assert.equal(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')).bin, undefined);
  });

  it('runs without sources', async () => {
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
