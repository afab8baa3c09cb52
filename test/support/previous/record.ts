/**
 * `npm run record:release [-- FOLDER]`: records a release as the one that the next version is upgraded from: its database
 * after a day's work (company.ts), its roles, and what it answered. FOLDER is a checkout of it with its dependencies;
 * default: this one. Writes the three files beside this one, which test/cluster/upgrade.test.ts restores.
 */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { brotliCompressSync, constants } from 'node:zlib';
import { type Server, Servers } from '../postgres.ts';
import { type ServiceProcess, startProcess } from '../processes.ts';
import { RECORDED_ADDRESS, RECORDED_SECRET, workAndRecord } from './company.ts';

/** Until periodic work has had its first round. */
const ROUNDS_MS = 20_000;
/** What changes rows or reads them; the rest has no shape that a migration could take away. */
const STATEMENT = /^\s*(WITH|SELECT|INSERT|UPDATE|DELETE|MERGE)\b/i;
const TENANT_SCHEMA = /t_[0-9a-f]{32}/g;

const release = resolve(process.argv[2] ?? join(import.meta.dirname, '..', '..', '..'));
const servers = new Servers();
const start = (server: Server): Promise<ServiceProcess> =>
  startProcess({
    services: [],
    databaseUrl: server.url(),
    natsUrl: '',
    folder: release,
    patience: 120_000,
    env: { PLATFORM_SECRET: RECORDED_SECRET, BASE_URL: RECORDED_ADDRESS, PORT: new URL(RECORDED_ADDRESS).port },
  });

/** The thousands of sample records of the larger tenant say nothing more than those of the smaller one: they are left out. */
async function leaveSamplesOut(server: Server): Promise<void> {
  const other = await servers.create('other');
  await (await start(other)).stop();
  const [steps] = await other.query<{ fingerprint: string }>(
    "SELECT fingerprint FROM seed.steps WHERE tenant = 'demo' AND step = 'samples'",
  );
  await other.stop('SIGQUIT');
  await promisify(execFile)(process.execPath, ['scripts/migrate.ts'], {
    cwd: release,
    env: { ...process.env, DATABASE_URL: server.url() },
  });
  await server.query(
    `INSERT INTO seed.steps (tenant, step, fingerprint) VALUES ('demo', 'samples', '${steps!.fingerprint}')`,
  );
}

try {
  const server = await servers.create('recorded', ['log_destination=jsonlog', 'log_directory=log']);
  await leaveSamplesOut(server);
  await (await start(server)).stop();
  await server.query("ALTER SYSTEM SET log_statement = 'all'", 'postgres');
  await server.query('SELECT pg_reload_conf()', 'postgres');
  const running = await start(server);
  const [{ at } = { at: '' }] = await server.query<{ at: string }>('SELECT now()::text AS at');
  const recorded = await workAndRecord(RECORDED_ADDRESS);
  await pause(ROUNDS_MS);
  await running.stop();

  const seen = new Map<string, readonly [string, string]>();
  const folder = servers.path('recorded/log');
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.json')))
    for (const line of readFileSync(join(folder, file), 'utf8').split('\n').filter(Boolean)) {
      const { user, message = '' } = JSON.parse(line) as { user?: string; message?: string };
      const text = /^(?:execute [^:]+|statement): ([\s\S]*)$/.exec(message)?.[1];
      if (!text || !user?.startsWith('login_') || !STATEMENT.test(text)) continue;
      const alike = `${user} ${text.replace(TENANT_SCHEMA, 't')}`;
      if (!seen.has(alike)) seen.set(alike, [user, text]);
    }
  const { version } = JSON.parse(readFileSync(join(release, 'package.json'), 'utf8')) as { version: string };
  const answers = { at, release: version, ...recorded, statements: [...seen.values()] };

  await servers.run('pg_dump', server.url(), '--format=custom', '--compress=0', `--file=${servers.path('dump')}`);
  const roles = await servers.run(
    'pg_dumpall',
    ...['-d', server.url('postgres'), '--roles-only', '--no-role-passwords'],
  );
  const files = {
    'database.dump.br': readFileSync(servers.path('dump')),
    'roles.sql.br': Buffer.from(roles),
    'answers.json.br': Buffer.from(JSON.stringify(answers)),
  };
  for (const [name, content] of Object.entries(files)) {
    // The configurations of two companies are much alike, and far apart from each other.
    const packed = brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_LGWIN]: 24 } });
    writeFileSync(join(import.meta.dirname, name), packed);
    console.log(`${name}: ${packed.length} bytes`);
  }
  console.log(
    `${answers.reads.length} reads, ${answers.changes.length} changes, ${answers.statements.length} statements`,
  );
} finally {
  await servers.stop();
}
process.exit(0);
