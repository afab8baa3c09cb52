/**
 * `npm test`: lint, types and every suite, with the set-up they need. `npm run test:long`: the files `*.long.test.ts` of
 * every suite. `npm run test:nightly`: the files `*.nightly.test.ts`, and once more, on the oldest supported PostgreSQL,
 * what depends on its version. One PostgreSQL server is shared by all suites, each test file works on a database of its
 * own. With arguments
 * (`npm test -- test/api/errors.test.ts`) only these files; TEST_POSTGRESQL=15 runs them, or everything, on another version.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { parseArgs, stripVTControlCharacters } from 'node:util';
import { OLDEST_POSTGRESQL } from '../mixins/database/server-version.ts';
import { CHROMIUM } from '../test/support/chromium.ts';
import { startTestServer } from '../test/support/database.ts';
import { hasPgBouncer } from '../test/support/pgbouncer.ts';
import { createPlatformDatabase } from '../test/support/platform.ts';
import { postgresPrograms } from '../test/support/postgres.ts';
import { debianBinaries, hasBinaries, testBinaries } from '../test/support/postgresql.ts';
import { removeTemporaryFolders } from '../test/support/temporary.ts';

const root = join(import.meta.dirname, '..');
const bin = join(root, 'node_modules', '.bin');
process.chdir(root);
// nats-server of the Debian package is in /usr/sbin, which is not on every user's PATH.
process.env['PATH'] = [bin, process.env['PATH'], '/usr/local/sbin', '/usr/sbin'].join(delimiter);
// Processes that tests start need half the processor time to load the program when an earlier one has compiled it.
process.env['NODE_COMPILE_CACHE'] ??= join(tmpdir(), 'node-compile-cache');

interface Suite {
  name: string;
  needsNats?: boolean;
  needsChromium?: boolean;
  needsPostgres?: boolean;
}
/** Suites whose files wait in one queue. */
interface Queue {
  suites: readonly Suite[];
  /** Files that run at the same time. More than there are processors: most of them wait for something. */
  jobs: number;
  needsDatabase: boolean;
}

const QUEUES: readonly Queue[] = [
  { suites: [{ name: 'unit' }, { name: 'tidy' }], jobs: 2, needsDatabase: false },
  {
    suites: [
      { name: 'service', needsNats: true },
      { name: 'api' },
      { name: 'cli' },
      { name: 'isolation' },
      { name: 'cluster', needsNats: true, needsPostgres: true },
      { name: 'browser', needsChromium: true },
    ],
    // Many of the long tests are clusters, which are measured, too.
    jobs: process.argv.includes('--long') || process.argv.includes('--nightly') ? 2 : 4,
    needsDatabase: true,
  },
  // Each has the machine for itself: what they measure is not to be of others.
  { suites: [{ name: 'cost' }, { name: 'storm', needsNats: true }], jobs: 1, needsDatabase: true },
];
/** Ends the names of files that `npm test` leaves to `npm run test:long`. */
const LONG = '.long.test.ts';
/** Those that `npm run test:long` leaves to `npm run test:nightly`: each takes a minute or more, most with a cluster. */
const NIGHTLY = '.nightly.test.ts';
/** Tests that depend on the version of PostgreSQL: roles, DDL, plans, and statements with recent features. */
const ON_OLDEST = globSync([
  'test/service/database/{logins.long,roles}.test.ts',
  'test/service/data/{audit-chain,platform-work,restore,revert}.test.ts',
  'test/service/expression/sql.test.ts',
  'test/service/metadata/{altering,physical}.test.ts',
  'test/api/data/{changes.long,rollups}.test.ts',
]);
const TOOLS = join(root, 'test');
const BROWSER_CODE = ['client', 'web/browser.tsconfig.json'];
const QUEUE_MINUTES_MAX = 45;
/** Of what ended without counting its failures. */
const REPORT_CHARACTERS_MAX = 4_000;

let passed = 0;
let failed = 0;
let skipped = 0;
const failures: string[] = [];
/** Failure output: printed again at the end. */
const reports: string[] = [];
const children = new Set<ChildProcess>();

/** By size, with what files share with their neighbours, which stands for the time they take. */
function sizeOf(file: string): number {
  const text = readFileSync(file, 'utf8');
  const shared = [...text.matchAll(/ from '(\.\/[\w-]+\.ts)'/g)].map(([, path = '']) => join(dirname(file), path));
  // An import may stand in a text.
  return [file, ...shared.filter(existsSync)].reduce((sum, path) => sum + statSync(path).size, 0);
}
/** Short tests start last, so that all processors stay busy until the end. */
const longestFirst = (a: string, b: string): number => sizeOf(b) - sizeOf(a);

const say = (text: string): void => console.log(`\n== ${text}`);

/** Runs a command and shows its output; resolves with the exit code and what it printed. */
function run(command: string, args: string[], env: NodeJS.ProcessEnv = {}): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
    });
    children.add(child);
    const limit = setTimeout(() => {
      console.log(`${command} ${args[0]} did not end within ${QUEUE_MINUTES_MAX} minutes.`);
      child.kill('SIGKILL');
    }, QUEUE_MINUTES_MAX * 60_000);
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk;
      process.stdout.write(chunk);
    });
    child.once('error', (error) => console.log(error.message));
    child.once('close', (code) => {
      clearTimeout(limit);
      children.delete(child);
      resolve({ code: code ?? 1, output });
    });
  });
}

function count(name: string, ok: boolean): void {
  if (ok) passed++;
  else {
    failed++;
    failures.push(name);
  }
}

async function check(name: string, command: string, args: string[]): Promise<void> {
  say(name);
  const { code, output } = await run(join(bin, command), args);
  count(name, code === 0);
  if (code !== 0) reports.push(`== ${name}\n${output.slice(-REPORT_CHARACTERS_MAX).trimEnd()}`);
}

async function mocha(name: string, files: string[], jobs: number, env: NodeJS.ProcessEnv): Promise<void> {
  say(`${name}: ${files.length} ${files.length === 1 ? 'file' : 'files'}`);
  const parallel = jobs > 1 && files.length > 1 ? ['--parallel', '--jobs', String(jobs)] : [];
  const script = join(root, 'node_modules', 'mocha', 'bin', 'mocha.js');
  const { code, output: printed } = await run(process.execPath, [script, ...parallel, ...files], env);
  const output = stripVTControlCharacters(printed);
  const total = (word: string): number => Number(new RegExp(`^ *(\\d+) ${word}`, 'm').exec(output)?.[1] ?? 0);
  passed += total('passing');
  skipped += total('pending');
  failed += total('failing');
  if (code === 0) return;
  failures.push(name);
  if (!total('failing')) failed++; // it did not even come to counting
  const said = output.search(/^ *\d+ failing$/m);
  reports.push(`== ${name}\n${output.slice(said < 0 ? -REPORT_CHARACTERS_MAX : said).trimEnd()}`);
}

/** The large programs of test/package.json, when one of these files runs them; npm leaves what is there already. */
function ensureTools(files: readonly string[]): boolean {
  if (!files.some((file) => readFileSync(file, 'utf8').includes("support/tools.ts'"))) return true;
  const [declared, installed] = [join(TOOLS, 'package-lock.json'), join(TOOLS, 'node_modules', '.package-lock.json')];
  if (existsSync(installed) && statSync(installed).mtimeMs > statSync(declared).mtimeMs) return true;
  say('installing the programs of test/package.json');
  return (
    spawnSync('npm', ['ci', '--loglevel=error'], { cwd: TOOLS, stdio: ['ignore', 'ignore', 'inherit'] }).status === 0
  );
}

/** Installs a Debian package when we may; what counts is whether it works afterwards. */
function install(name: string): void {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return;
  say(`${name} is missing: installing the Debian package ${name}`);
  for (const args of [
    ['-o', 'DPkg::Lock::Timeout=120', 'update', '-qq'],
    ['-o', 'DPkg::Lock::Timeout=120', 'install', '-y', '-qq', name],
  ]) {
    try {
      execFileSync('apt-get', args, {
        stdio: ['ignore', 'ignore', 'inherit'],
        env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      });
    } catch {
      // The caller looks whether it is there.
    }
  }
}

const present = (command: string): boolean => spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;

/** nats-server on the PATH, or installed when we may; otherwise one line says what to do. */
function ensureNats(): boolean {
  if (!present('nats-server')) install('nats-server');
  if (present('nats-server')) return true;
  console.log('Install nats-server to run the cluster suite: apt install nats-server, or https://nats.io/download.');
  return false;
}

/** pg_dump and its like, which the npm packages lack, or installed when we may; otherwise one line says what to do. */
function ensurePostgres(): boolean {
  if (postgresPrograms() === null) install('postgresql');
  if (postgresPrograms() !== null) return true;
  console.log(
    'Install PostgreSQL to run the cluster suite (Debian: apt install postgresql), or name its programs in PG_BIN.',
  );
  return false;
}

/** Chromium on the PATH, or installed when we may; without one the suite is skipped, and that is said. */
function ensureChromium(): boolean {
  if (!present(CHROMIUM)) install('chromium');
  if (present(CHROMIUM)) return true;
  console.log('The browser suite is skipped: install Chromium to run it (Debian: apt install chromium).');
  return false;
}

/** Programs of the oldest supported PostgreSQL: those of Debian's package, which is installed when we may. */
function oldestBinaries(): string | null {
  const folder = debianBinaries(OLDEST_POSTGRESQL);
  if (!hasBinaries(folder)) install(`postgresql-${OLDEST_POSTGRESQL}`);
  if (hasBinaries(folder)) return folder;
  console.log(
    `The suites are not run on PostgreSQL ${OLDEST_POSTGRESQL}: install it to run them (Debian: apt install postgresql-${OLDEST_POSTGRESQL}).`,
  );
  return null;
}

/** The tests behind a pooler skip themselves without it. */
function ensurePgBouncer(): void {
  if (!hasPgBouncer()) install('pgbouncer');
  if (!hasPgBouncer())
    console.log('The tests behind a pooler are skipped: install PgBouncer (Debian: apt install pgbouncer).');
}

/** Checks the suite's requirements; a suite without Chromium is skipped, any other fails. */
function canRun(suite: Suite & { files: string[] }): boolean {
  if (suite.files.some((file) => file.endsWith('/pooler.nightly.test.ts'))) ensurePgBouncer();
  if ((suite.needsNats && !ensureNats()) || (suite.needsPostgres && !ensurePostgres())) count(suite.name, false);
  else if (suite.needsChromium && !ensureChromium()) skipped += suite.files.length;
  else return true;
  return false;
}

async function runOnOldest(): Promise<void> {
  const binaries = oldestBinaries();
  if (!binaries) {
    skipped += ON_OLDEST.length;
    return;
  }
  const url = await startServer(binaries);
  await mocha(`PostgreSQL ${OLDEST_POSTGRESQL}`, ON_OLDEST.toSorted(longestFirst), 3, { TEST_DATABASE_URL: url });
}

const { values: options, positionals } = parseArgs({
  options: { long: { type: 'boolean' }, nightly: { type: 'boolean' } },
  allowPositionals: true,
});
const wanted = positionals.flatMap((argument) => {
  const found = globSync(argument).flatMap((path) =>
    path.endsWith('.ts') ? [path] : globSync(`${path}/**/*.test.ts`),
  );
  if (!found.length) console.log(`No test file matches ${argument}.`);
  return found;
});
if (positionals.length && !wanted.length) process.exit(1);
const filesOf = ({ name }: Suite): string[] =>
  wanted.length
    ? wanted.filter((file) => file.replaceAll('\\', '/').startsWith(`test/${name}/`))
    : globSync(`test/${name}/**/*.test.ts`).filter(
        (file) => file.endsWith(LONG) === Boolean(options.long) && file.endsWith(NIGHTLY) === Boolean(options.nightly),
      );
const queues = QUEUES.map((queue) => ({
  ...queue,
  suites: queue.suites.map((suite) => ({ ...suite, files: filesOf(suite) })).filter(({ files }) => files.length),
})).filter(({ suites }) => suites.length);

const servers = new Set<Awaited<ReturnType<typeof startTestServer>>>();
async function startServer(binaries?: string): Promise<string> {
  const started = await startTestServer(binaries);
  servers.add(started);
  return started.server.url;
}
async function close(): Promise<void> {
  for (const child of children) child.kill('SIGTERM');
  removeTemporaryFolders();
  for (const started of servers) {
    servers.delete(started);
    await started.server.stop();
    await rm(started.folder, { recursive: true, force: true });
  }
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => void close().finally(() => process.exit(1)));

try {
  if (!wanted.length && !options.long && !options.nightly) {
    await check('lint (biome)', 'biome', ['check', '.']);
    await check('types (tsc)', 'tsc', ['--noEmit']);
    for (const code of BROWSER_CODE)
      await check(`types of what browsers run (tsc): ${code}`, 'tsc', ['--noEmit', '--project', code]);
  }
  await check('the draft of the documents', 'node', ['scripts/documents.ts']);
  const files = queues.flatMap(({ suites }) => suites.flatMap((suite) => suite.files));
  if (!ensureTools(files)) count('installing the programs of test/package.json', false);
  const env: NodeJS.ProcessEnv = {};
  if (queues.some(({ needsDatabase }) => needsDatabase)) {
    if (!process.env['TEST_DATABASE_URL']) {
      say('starting PostgreSQL for the tests');
      process.env['TEST_DATABASE_URL'] = await startServer();
    }
    env['TEST_DATABASE_URL'] = process.env['TEST_DATABASE_URL'];
    say('seeding the demo tenants that suites clone');
    try {
      await (await createPlatformDatabase()).drop();
    } catch (error) {
      console.error(error);
      count('seeding the demo tenants', false);
    }
  }
  for (const { suites, jobs, needsDatabase } of queues) {
    const able = suites.filter(canRun);
    const queued = able.flatMap((suite) => suite.files).sort(longestFirst);
    if (queued.length) await mocha(able.map(({ name }) => name).join(', '), queued, jobs, needsDatabase ? env : {});
  }
  if (options.nightly && !wanted.length && !testBinaries()) await runOnOldest();
} catch (error) {
  console.error(error);
  count('the test run itself', false);
} finally {
  await close();
}
if (skipped) console.log(`\n${skipped} skipped`);
if (failures.length) console.log(`\n${[...reports, `Failed: ${failures.join(', ')}`].join('\n\n')}`);
console.log(`\n${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
