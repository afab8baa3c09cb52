/** What the login role of each service reaches, and what it does not. */
import assert from 'node:assert/strict';
import pg from 'pg';
import { databaseVariable, readConfig } from '../../../config/env.ts';
import { ALL_SERVICES, type ServiceName } from '../../../config/services.ts';
import { tenantSchema } from '../../../lib/context.ts';
import { migrateServices, start } from '../../../main.ts';
import { Database, sqlState } from '../../../mixins/database/database.ts';
import { derivedUrl, loginOf } from '../../../mixins/database/logins.ts';
import { loginUrls } from '../../../mixins/database/open.ts';
import { api, tokenFor } from '../../support/client.ts';
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

  it('is the one that the platform signs in as, for each of its services', async () => {
    const { rows } = await owner.query<{ usename: string }>(
      "SELECT DISTINCT usename FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'erp %'",
    );
    const names = rows.map(({ usename }) => usename);
    assert.ok(names.includes('login_data') && names.includes('login_metadata') && names.includes('login_auth'));
    for (const name of names) assert.match(name, /^login_/);
  });

  it('is no superuser, makes neither roles nor databases, and inherits nothing', async () => {
    const { rows } = await owner.query(
      `SELECT rolname FROM pg_roles WHERE rolname = ANY($1)
         AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls OR rolinherit)`,
      [ALL_SERVICES.map(loginOf)],
    );
    assert.deepEqual(rows, []);
  });

  it('makes no temporary tables, large objects, schemas, or anything in the public schema', async () => {
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

  it('of data reaches the records of tenants, and neither credentials, configuration nor the definition of tables', async () => {
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

  it('of auth reaches no records', async () => {
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

  it('of metadata reaches no credentials', async () => {
    for (const text of ['SELECT * FROM auth.credentials', 'SET ROLE svc_auth', 'SET ROLE svc_data'])
      await refuses('metadata', text);
    assert.equal(
      (await as('metadata', 'SELECT FROM metadata.components')).rowCount,
      0,
      'without a tenant none is shown',
    );
  });

  it('of gateway and ratelimit reaches nothing that is stored', async () => {
    for (const service of ['gateway', 'ratelimit'] as const)
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

  it('removes an audit row only when it has reached its retention', async () => {
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

  it('is all that a process needs once the owner has migrated, and not before', async () => {
    const empty = await createPlatformDatabase({ seed: false });
    const variables = Object.fromEntries(
      ALL_SERVICES.map((service) => [databaseVariable(service), derivedUrl(empty.url, service)!]),
    );
    const config = readConfig(testEnvironment('', variables));
    try {
      await assert.rejects(start(config), /npm run migrate|permission denied|does not exist/);
      const database = new Database(empty.url, { size: 2, applicationName: 'migrate test' });
      await migrateServices(database, ALL_SERVICES);
      await loginUrls(database, config, ALL_SERVICES, assert.fail);
      await database.query("DELETE FROM data.migrations WHERE name = '0002-sweeps.sql'");
      await assert.rejects(start(config), /tables of data lack 0002-sweeps\.sql: run `npm run migrate`/);
      await database.query("INSERT INTO data.migrations (name) VALUES ('0002-sweeps.sql')");
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
