/** The commands of operators and developers explain themselves, and do nothing when they are called wrongly. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Database } from '../../mixins/database/database.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { root } from '../support/sources.ts';

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Nothing is there, so a command that went to work would fail otherwise. */
const NOWHERE = { DATABASE_URL: 'postgres://erp@127.0.0.1:1/erp', NATS_URL: 'nats://127.0.0.1:1' };

const run = (script: string, args: readonly string[], env: Record<string, string> = NOWHERE): Promise<Outcome> =>
  promisify(execFile)(process.execPath, [join(root, script), ...args], { env: { ...process.env, ...env } }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: Outcome) => error,
  );

/** By its script, with the exit code of a call that it does not understand. */
const COMMANDS = {
  'scripts/audit.ts': 2,
  'scripts/bus-keys.ts': 1,
  'scripts/limits.ts': 1,
  'scripts/migrate.ts': 1,
  'scripts/repl.ts': 1,
  'scripts/restored.ts': 2,
  'scripts/rotate-secret.ts': 1,
  'scripts/token.ts': 1,
  'test/storm/run.ts': 2,
} as const;

describe('a command', () => {
  for (const [script, exitCode] of Object.entries(COMMANDS)) {
    it(`${script} prints its help, and refuses unknown options`, async function () {
      this.timeout(60_000);
      const [help, wrong] = await Promise.all([run(script, ['--help']), run(script, ['--dry-run'])]);
      assert.deepEqual([help.code, help.stderr], [0, '']);
      assert.match(help.stdout, /^Usage: npm run /);
      assert.deepEqual([wrong.code, wrong.stdout], [exitCode, '']);
      assert.match(wrong.stderr, /^[a-z-]+: Unknown option '--dry-run'[\s\S]*\nUsage: npm run /);
    });
  }
});

describe('npm run repl', () => {
  it('points to the console when it is not installed, as in the image of the services', async function () {
    this.timeout(60_000);
    const folder = await mkdtemp(join(tmpdir(), 'erp-without-console-'));
    try {
      for (const name of [
        'config',
        'contracts',
        'lib',
        'mixins',
        'package.json',
        'scripts',
        'services',
        'templates',
        'web',
      ])
        await symlink(join(root, name), join(folder, name));
      await mkdir(join(folder, 'node_modules'));
      for (const name of await readdir(join(root, 'node_modules')))
        if (name !== 'moleculer-repl')
          await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name));
      const { code, stdout, stderr } = (await promisify(execFile)(
        process.execPath,
        ['--preserve-symlinks', '--preserve-symlinks-main', join(folder, 'scripts/repl.ts')],
        { env: { PATH: process.env['PATH'], NODE_ENV: 'production' } },
      ).catch((error) => error)) as Outcome;
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, /^The console is not installed here .*target `console`.*`npm ci` without --omit=dev\.\n$/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe('npm run tenant', () => {
  it('prints help for itself and each command, and refuses unknown arguments', async function () {
    this.timeout(60_000);
    const tenant = (...args: string[]) => run('scripts/tenant.ts', args);
    const help = await tenant('--help');
    assert.deepEqual([help.code, help.stderr], [0, '']);
    const commands = [...help.stdout.matchAll(/^ {2}([a-z]+)(?= [[<]| {2})/gm)]
      .map(([, name]) => name!)
      .filter((name) => name !== 'help');
    assert.ok(commands.includes('create') && commands.includes('list'), help.stdout);
    const helps = await Promise.all(commands.map((name) => tenant('help', name)));
    for (const [i, { code, stdout, stderr }] of helps.entries()) {
      assert.deepEqual([code, stderr], [0, ''], stdout);
      assert.match(stdout, new RegExp(`^Usage: npm run tenant -- (?:${commands[i]})?`));
    }
    for (const [args, said] of [
      [['list', '--dry-run'], /^tenant: unknown option '--dry-run'\nAdd --help/],
      [['lst'], /^tenant: unknown command 'lst'/],
      [['create', '--key', 'x'], /^tenant: required option '--name <name>' not specified/],
      [[], /Commands:/],
    ] as const) {
      const wrong = await tenant(...args);
      assert.deepEqual([wrong.code, wrong.stdout], [2, ''], args.join(' '));
      assert.match(wrong.stderr, said);
    }
  });
});

describe('npm run restored', () => {
  let database: TestDatabase;
  before(async () => {
    database = await createDatabase();
  });
  after(() => database?.drop());

  it('changes nothing in a read-only database, and reports it', async function () {
    this.timeout(30_000);
    const owner = new Database(database.url, { size: 1, applicationName: 'test' });
    const { name } = await owner
      .query<{ name: string }>('SELECT current_database() AS name')
      .then(({ rows }) => rows[0]!);
    await owner.query(`ALTER DATABASE "${name}" SET default_transaction_read_only = on`);
    await owner.close();
    const outcome = await run('scripts/restored.ts', [], { DATABASE_URL: database.url });
    assert.deepEqual([outcome.code, outcome.stdout], [2, '']);
    assert.match(outcome.stderr, /^Nothing was done: .* is read-only .*\. Run it again when it takes changes\.\n$/);
  });
});
