/**
 * Real PostgreSQL for tests. `npm test` starts one server and names it in TEST_DATABASE_URL; a test file that is run
 * alone starts its own in a temporary folder. Every test file works on a database of its own, empty or cloned from a
 * template, and drops it in its after-hook; a connection that is still open then is an error of the test.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { Database } from '../../mixins/database/database.ts';
import { type EmbeddedDatabase, startEmbeddedDatabase } from '../../mixins/database/embedded.ts';
import { migrate } from '../../mixins/database/migrate.ts';
import { testBinaries } from './postgresql.ts';

export interface TestDatabase {
  readonly name: string;
  readonly url: string;
  /** Drops the database; fails while a connection to it is open. */
  drop(): Promise<void>;
}

/** Nothing of a test survives a power cut anyway. */
const FAST = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'max_wal_size=8GB'];
const TEMPLATE_LOCK = 7_164_002;

const open = new Set<TestDatabase>();
let own: Promise<{ server: EmbeddedDatabase; folder: string }> | undefined;

/** Starts a server for tests in a temporary folder; scripts/test.ts shares one among all suites. `binaries`: their folder. */
export async function startTestServer(
  binaries = testBinaries(),
): Promise<{ server: EmbeddedDatabase; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'erp-test-'));
  return { server: await startEmbeddedDatabase(folder, { settings: FAST, binaries }), folder };
}

/** Address of the server all databases of this run live on. */
async function serverUrl(): Promise<string> {
  if (process.env['TEST_DATABASE_URL']) return process.env['TEST_DATABASE_URL'];
  return (await (own ??= startTestServer())).server.url;
}

const addressOf = (server: string, database: string): string => {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.toString();
};

/** Runs `work` on a short-lived connection. */
async function connected<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, application_name: 'test support' });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** A database of its own for a test file: empty, or a clone of `template` (some 100 ms). */
export async function createDatabase(options: { template?: string } = {}): Promise<TestDatabase> {
  const server = await serverUrl();
  const name = `test_${process.pid}_${randomBytes(4).toString('hex')}`;
  await connected(addressOf(server, 'postgres'), (client) =>
    client.query(
      options.template
        ? `CREATE DATABASE ${name} TEMPLATE ${options.template} STRATEGY FILE_COPY`
        : `CREATE DATABASE ${name}`,
    ),
  );
  const database: TestDatabase = {
    name,
    url: addressOf(server, name),
    drop: async () => {
      open.delete(database);
      const left = await connected(addressOf(server, 'postgres'), async (client) => {
        const openConnections = () =>
          client.query<{ application_name: string; query: string }>(
            'SELECT application_name, query FROM pg_stat_activity WHERE datname = $1',
            [name],
          );
        let { rows } = await openConnections();
        // The server process of a connection that was just closed takes a moment to end, and a long one on a busy machine.
        for (let i = 0; rows.length && i < 200; i++) {
          await pause(50);
          ({ rows } = await openConnections());
        }
        await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
        return rows;
      });
      if (left.length)
        throw new Error(
          `${left.length} connection(s) were left open, such as ${left[0]!.application_name || 'one'}: ${left[0]!.query.slice(0, 200)}`,
        );
    },
  };
  open.add(database);
  return database;
}

/** Metadata's schema in a database without a tenant, including the functions that compiled statements call. */
export async function migrateMetadata(database: Database): Promise<void> {
  await migrate(database, 'metadata', join(import.meta.dirname, '..', '..', 'services', 'metadata', 'migrations'));
}

/** A hash over everything that shapes the seeded demo, so that a kept server never serves an old one. */
async function fingerprint(): Promise<string> {
  const root = join(import.meta.dirname, '..', '..');
  const hash = createHash('sha256');
  for (const folder of ['templates', 'services', 'lib', 'mixins']) {
    const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    for (const file of files.sort()) hash.update(file.slice(root.length)).update(await readFile(file));
  }
  return hash.digest('hex').slice(0, 12);
}

/**
 * Name of the template database that holds the demo tenants, built by `fill` once per state of the sources; processes
 * that want it meanwhile wait.
 */
export function demoTemplate(fill: (url: string) => Promise<void>): Promise<string> {
  return (template ??= makeDemoTemplate(fill));
}

let template: Promise<string> | undefined;

async function makeDemoTemplate(fill: (url: string) => Promise<void>): Promise<string> {
  const server = await serverUrl();
  const name = `demo_${await fingerprint()}`;
  await connected(addressOf(server, 'postgres'), async (client) => {
    await client.query('SELECT pg_advisory_lock($1)', [TEMPLATE_LOCK]);
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [name]);
    if (rowCount) return;
    const unfinished = `${name}_unfinished`;
    await client.query(`DROP DATABASE IF EXISTS ${unfinished} WITH (FORCE)`);
    await client.query(`CREATE DATABASE ${unfinished}`);
    await fill(addressOf(server, unfinished));
    await client.query(`ALTER DATABASE ${unfinished} RENAME TO ${name}`);
  });
  return name;
}

/** For the after-hook of a run: names of databases that no test dropped. */
export const databasesLeftOpen = (): string[] => [...open].map((database) => database.name);

/** Stops the server that this process started for itself, if any. */
export async function stopOwnServer(): Promise<void> {
  if (!own) return;
  const { server, folder } = await own;
  own = undefined;
  template = undefined;
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
