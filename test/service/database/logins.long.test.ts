/** Database privileges of each service's login role. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { databaseVariable, readConfig } from '../../../config/env.ts';
import { ALL_SERVICES, type ServiceName } from '../../../config/services.ts';
import { tenantSchema } from '../../../lib/context.ts';
import { migrateServices, start } from '../../../main.ts';
import { Database, sqlState } from '../../../mixins/database/database.ts';
import { derivedUrl, loginOf } from '../../../mixins/database/logins.ts';
import { givePasswords } from '../../../mixins/database/open.ts';
import { api, forgetTokens, tokenFor } from '../../support/client.ts';
import { startTestServer } from '../../support/database.ts';
import { createPlatformDatabase, startPlatform, type TestPlatform, testEnvironment } from '../../support/platform.ts';

const REFUSED = '42501';

describe('the login role of a service', function () {
  this.timeout(180_000);
  let platform: TestPlatform;
  let owner: pg.Client;
  let records: string;
  const logins = new Map<ServiceName, pg.Client>();

  const connected = async (url: string): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: url, application_name: 'login test' });
    await client.connect();
    return client;
  };
  const as = (service: ServiceName, text: string): Promise<pg.QueryResult> => logins.get(service)!.query(text);
  const refuses = (service: ServiceName, text: string): Promise<void> =>
    assert.rejects(as(service, text), (error) => sqlState(error) === REFUSED, `${service}: ${text}`);

  before(async () => {
    platform = await startPlatform();
    owner = await connected(platform.database.url);
    const { rows } = await owner.query<{ id: string }>("SELECT id FROM metadata.tenants WHERE key = 'demo'");
    records = tenantSchema(rows[0]!.id);
    for (const service of ALL_SERVICES)
      logins.set(service, await connected(derivedUrl(platform.database.url, service)!));
  });
  after(async () => {
    for (const client of [...logins.values(), ...(owner ? [owner] : [])]) await client.end();
    await platform?.stop();
  });

  it('is used by each service to sign in', async () => {
    const { rows } = await owner.query<{ usename: string }>(
      "SELECT DISTINCT usename FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'erp %'",
    );
    const names = rows.map(({ usename }) => usename);
    assert.ok(names.includes('login_data') && names.includes('login_metadata') && names.includes('login_auth'));
    for (const name of names) assert.match(name, /^login_/);
  });

  it('is no superuser, cannot create roles or databases, and inherits nothing', async () => {
    const { rows } = await owner.query(
      `SELECT rolname FROM pg_roles WHERE rolname = ANY($1)
         AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls OR rolinherit)`,
      [ALL_SERVICES.map(loginOf)],
    );
    assert.deepEqual(rows, []);
  });

  it('cannot create temporary tables, large objects, schemas, or objects in the public schema', async () => {
    for (const service of ALL_SERVICES) {
      await refuses(service, 'CREATE TEMPORARY TABLE hidden (id integer)');
      await refuses(service, 'SELECT lo_create(0)');
      await refuses(service, "SELECT lo_from_bytea(0, 'x')");
      await refuses(service, 'CREATE SCHEMA more');
      await refuses(service, 'CREATE TABLE public.more (id integer)');
    }
    await as('data', `SET ROLE ${records}`);
    await refuses('data', 'CREATE TEMPORARY TABLE hidden (id integer)');
    await refuses('data', 'SELECT lo_create(0)');
    await as('data', 'RESET ROLE');
  });

  it('of data accesses the records of tenants, but no credentials, configuration or table definitions', async () => {
    for (const text of [
      'SELECT * FROM auth.credentials',
      'SELECT * FROM auth.keys',
      'SELECT * FROM metadata.tenants',
      'SET ROLE svc_auth',
      'SET ROLE svc_metadata',
      'SET ROLE login_auth',
      `SET ROLE ${records}_owner`,
      "SELECT set_config('role', 'svc_auth', false)",
      `SELECT set_config('role', '${records}_owner', false)`,
      'SELECT metadata.create_tenant_schema(gen_random_uuid())',
      `CREATE TABLE ${records}.more (id integer)`,
      'CREATE ROLE more',
    ])
      await refuses('data', text);
    await as('data', `SET ROLE ${records}`);
    assert.ok((await as('data', `SELECT FROM ${records}."Account"`)).rowCount! > 0);
    await refuses('data', `DELETE FROM ${records}._audit`);
    await as('data', 'RESET ROLE');
  });

  it('of auth cannot access records', async () => {
    for (const text of [
      `SELECT FROM ${records}."Account"`,
      `SET ROLE ${records}`,
      `SET ROLE ${records}_owner`,
      'SET ROLE svc_metadata',
      'SET ROLE svc_data',
      'SELECT * FROM data.secrets',
      'SELECT * FROM pgboss.job',
    ])
      await refuses('auth', text);
    assert.ok((await as('auth', 'SELECT FROM auth.credentials')).rowCount! > 0, 'a sign-in finds its tenant');
  });

  it('of metadata cannot access credentials', async () => {
    for (const text of ['SELECT * FROM auth.credentials', 'SET ROLE svc_auth', 'SET ROLE svc_data'])
      await refuses('metadata', text);
    assert.equal(
      (await as('metadata', 'SELECT FROM metadata.components')).rowCount,
      0,
      'without a tenant none is shown',
    );
  });

  it('of gateway, mcp and ratelimit cannot access stored data', async () => {
    for (const service of ['gateway', 'mcp', 'ratelimit'] as const)
      for (const text of [
        'SELECT * FROM auth.credentials',
        'SELECT * FROM metadata.tenants',
        'SELECT * FROM data.secrets',
        `SELECT * FROM ${records}."Account"`,
        `SET ROLE ${records}`,
        'SET ROLE svc_auth',
      ])
        await refuses(service, text);
  });

  it('deletes an audit row only after its retention', async () => {
    await as('data', `SET ROLE ${records}`);
    await owner.query(
      `INSERT INTO ${records}._audit_chain (position, audit_id, prev_hash, hash)
         SELECT coalesce((SELECT max(position) FROM ${records}._audit_chain), 0) + 1, audit_id, 'x', 'x'
         FROM ${records}._audit WHERE audit_id NOT IN (SELECT audit_id FROM ${records}._audit_chain) LIMIT 1`,
    );
    await assert.rejects(
      as('data', `SELECT ${records}._remove_audit(9223372036854775807)`),
      /has not reached its retention/,
    );
    await as('data', 'RESET ROLE');
  });

  it('suffices for a process once the owner has migrated, and not before', async () => {
    const empty = await createPlatformDatabase({ seed: false });
    const variables = Object.fromEntries(
      ALL_SERVICES.map((service) => [databaseVariable(service), derivedUrl(empty.url, service)!]),
    );
    const config = readConfig(testEnvironment('', variables));
    try {
      await assert.rejects(start(config), /npm run migrate|permission denied|does not exist/);
      const database = new Database(empty.url, { size: 2, applicationName: 'migrate test' });
      await migrateServices(database, ALL_SERVICES);
      await givePasswords(database, config, ALL_SERVICES, assert.fail);
      await database.query("DELETE FROM data.migrations WHERE name = '0001-data.sql'");
      await assert.rejects(start(config), /tables of data lack 0001-data\.sql: run `npm run migrate`/);
      await database.query("INSERT INTO data.migrations (name) VALUES ('0001-data.sql')");
      await database.close();
      const running = await start(config);
      try {
        const sam = api(running.baseUrl!, await tokenFor(running.baseUrl!, 'sam'));
        assert.equal((await sam.post('/data/Account', { name: 'Logins Ltd' })).status, 201);
      } finally {
        await running.stop();
      }
    } finally {
      await empty.drop();
    }
  });
});

describe('the password of a login', function () {
  this.timeout(120_000);
  let server: Awaited<ReturnType<typeof startTestServer>>;
  const chosen = new Map<ServiceName, string>();
  const PRODUCTION = {
    NODE_ENV: 'production',
    BASE_URL_ALLOW_INSECURE: 'true',
    PLATFORM_SECRET: randomBytes(48).toString('base64'),
  };

  const run = promisify(execFile);
  const migrate = (env: Record<string, string>) =>
    run(process.execPath, ['scripts/migrate.ts'], {
      env: { PATH: process.env['PATH']!, DATABASE_URL: server.server.url, ...env },
    });
  const variables = (): Record<string, string> =>
    Object.fromEntries(chosen.entries().map(([service, url]) => [databaseVariable(service), url]));
  const startAsOwner = (env: Record<string, string> = {}) =>
    start(readConfig(testEnvironment(server.server.url, { SEED_DEMO: 'false', ...env })));
  const asOwner = async (text: string): Promise<pg.QueryResult> => {
    const client = new pg.Client({ connectionString: server.server.url });
    await client.connect();
    return client.query(text).finally(() => client.end());
  };
  const chosenFit = async (): Promise<void> => {
    for (const connectionString of chosen.values()) {
      const client = new pg.Client({ connectionString });
      await client.connect();
      await client.end();
    }
  };

  before(async () => {
    server = await startTestServer();
    for (const service of ALL_SERVICES) {
      const url = new URL(server.server.url);
      [url.username, url.password] = [loginOf(service), randomBytes(18).toString('hex')];
      chosen.set(service, url.href);
    }
  });
  after(async () => {
    await server?.server.stop();
    if (server) await rm(server.folder, { recursive: true, force: true });
  });

  it('is derived from the owner’s, and follows it, until an operator sets another', async () => {
    assert.equal((await migrate({})).stderr, '');
    await (await startAsOwner()).stop();
    // The owner gets another password, and the login still has what was derived from the one before.
    await asOwner("ALTER ROLE login_data PASSWORD 'derived from what the owner had before'");
    await (await startAsOwner()).stop();
  });

  it('is reported as missing by a migration that sets those of other logins', async () => {
    const { [databaseVariable('agent')]: _, ...most } = variables();
    const { stderr } = await migrate(most);
    assert.match(stderr, /^login_agent cannot sign in .* set DATABASE_URL_AGENT and migrate again/);
    assert.equal((await migrate(variables())).stderr, '');
    assert.equal((await migrate(most)).stderr, '');
  });

  it('is that of its address, and stays when the owner migrates or starts a service without it', async () => {
    await migrate(variables());
    await chosenFit();
    await migrate({});
    await chosenFit();
    await assert.rejects(startAsOwner(), /login_gateway has a password of its own.* DATABASE_URL_GATEWAY/);
    await chosenFit();
    const url = new URL(chosen.get('data')!);
    url.password = randomBytes(18).toString('hex');
    chosen.set('data', url.href);
    await migrate({ DATABASE_URL_DATA: url.href });
    await chosenFit();
  });

  it('that becomes wrong makes a process unready and its operations unavailable until corrected', async () => {
    const running = await start(readConfig(testEnvironment('', variables())));
    try {
      const sam = api(running.baseUrl!, await tokenFor(running.baseUrl!, 'sam'));
      const list = async () => (await sam.get('/data/Account')).status;
      const ready = async () => (await fetch(`${running.baseUrl}/readyz`)).status;
      assert.deepEqual([await list(), await ready()], [200, 200]);
      await asOwner("ALTER ROLE login_data PASSWORD 'another'");
      await asOwner("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'login_data'");
      await pause(1_100); // the answer about readiness is a second old at most
      assert.deepEqual([await list(), await ready(), await list()], [503, 503, 503]);
      await migrate(variables());
      await pause(1_100);
      assert.deepEqual([await ready(), await list()], [200, 200]);
    } finally {
      await running.stop();
      forgetTokens(running.baseUrl!);
    }
  });

  it('that is wrong is reported with its variable, as are a wrong login and certificate', async () => {
    const refusal = async (service: ServiceName, change: (url: URL) => void): Promise<string> => {
      const url = new URL(chosen.get(service)!);
      change(url);
      const env = { ...variables(), [databaseVariable(service)]: url.href };
      let said = '';
      await assert.rejects(start(readConfig(testEnvironment('', env))), ({ name, message }: Error) => {
        said = message;
        return name === 'ConfigError';
      });
      return said;
    };
    assert.match(
      await refusal('data', (url) => (url.password = 'x')),
      /The database of DATABASE_URL_DATA refuses us: password/,
    );
    assert.match(
      await refusal('data', (url) => (url.href = chosen.get('auth')!)),
      /DATABASE_URL_DATA lacks a right: .*\(it is login_auth, where login_data is expected\)/,
    );
    assert.match(
      await refusal('auth', (url) => (url.search = '?sslmode=verify-full&sslrootcert=/nowhere/ca.crt')),
      /The file \/nowhere\/ca\.crt that DATABASE_URL_AUTH names/,
    );
  });

  it('is never derived in production, where no service has the address of the owner', async () => {
    await assert.rejects(startAsOwner(PRODUCTION), /address of the owner.*npm run migrate.*DATABASE_URL_DATA/);
    await assert.rejects(startAsOwner({ ...PRODUCTION, ...variables() }), /address of the owner/);
    await chosenFit();
    await (await start(readConfig(testEnvironment('', { ...PRODUCTION, ...variables() })))).stop();
  });
});
