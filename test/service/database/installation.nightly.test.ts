/** A process that is started with the wrong settings does not begin to work on the database of others. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { databaseVariable, readConfig } from '../../../config/env.ts';
import { ALL_SERVICES } from '../../../config/services.ts';
import { start } from '../../../main.ts';
import { Database } from '../../../mixins/database/database.ts';
import { derivedUrl } from '../../../mixins/database/logins.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { type NatsServer, startNats } from '../../support/nats.ts';
import { testEnvironment } from '../../support/platform.ts';
import { startProcess } from '../../support/processes.ts';

const secret = (): string => randomBytes(48).toString('base64');

describe('the database of an installation', function () {
  this.timeout(120_000);
  let own: TestDatabase;
  let owner: Database;
  let nats: NatsServer;
  before(async () => {
    nats = await startNats();
  });
  after(() => nats?.stop());
  beforeEach(async () => {
    own = await createDatabase();
    owner = new Database(own.url, { size: 1, applicationName: 'installation test' });
  });
  afterEach(async () => {
    await owner?.close();
    await own?.drop();
  });

  /** A process of production has the logins alone. */
  const beginProduction = async (): Promise<void> => {
    await once({});
    await once(production, { logins: true });
  };
  const production = { NODE_ENV: 'production', PLATFORM_SECRET: secret(), BASE_URL: 'https://erp.example' };
  /** Starts and stops a process. `logins`: it knows those of the services alone, not the owner. */
  const once = async (env: Record<string, string>, { logins = false } = {}): Promise<void> => {
    const urls = ALL_SERVICES.map((service) => [databaseVariable(service), derivedUrl(own.url, service)!]);
    const more = { SEED_DEMO: 'false', ...(logins ? Object.fromEntries(urls) : {}), ...env };
    const running = await start(readConfig(testEnvironment(logins ? '' : own.url, more)));
    await running.stop();
  };
  const tables = async (): Promise<number> =>
    (await owner.query<{ n: number }>('SELECT count(*)::int AS n FROM pg_tables')).rows[0]!.n;

  it('of production refuses a development process, with the reason', async () => {
    await beginProduction();
    await owner.query('DROP TABLE data.secrets CASCADE');
    await owner.query("DELETE FROM data.migrations WHERE name = '0001-data.sql'");
    const before = await tables();
    await assert.rejects(once({}), /used in production.*NODE_ENV=production.*DATABASE_ALLOW_DEVELOPMENT=true/);
    assert.equal(await tables(), before, 'nothing was migrated');
    const { PLATFORM_SECRET } = production;
    await once({ PLATFORM_SECRET, DATABASE_ALLOW_DEVELOPMENT: 'true' });
    await assert.rejects(once({}, { logins: true }), /used in production/);
    await assert.rejects(once({ NODE_ENV: 'test' }, { logins: true }), /used in production/);
  });

  it('of production gets no demo tenants, even when a development process is allowed', async () => {
    const { PLATFORM_SECRET } = production;
    await beginProduction();
    await once({ PLATFORM_SECRET, DATABASE_ALLOW_DEVELOPMENT: 'true', SEED_DEMO: 'true' });
    const { rows } = await owner.query('SELECT key FROM metadata.tenants');
    assert.deepEqual(rows, []);
  });

  it('of development becomes that of production with its first process', async () => {
    await once({});
    await once(production, { logins: true });
    await assert.rejects(once({ PLATFORM_SECRET: production.PLATFORM_SECRET }), /used in production/);
  });

  it('accepts only processes with the shared secret, in any environment', async () => {
    const [shared, other] = [secret(), secret()];
    await once({ PLATFORM_SECRET: shared });
    for (const services of ['data', 'auth', 'gateway,metadata', 'ratelimit']) {
      const env = { SERVICES: services, NATS_URL: nats.url };
      await assert.rejects(once({ ...env, PLATFORM_SECRET: other }), /another PLATFORM_SECRET/, services);
      await assert.rejects(once(env), /PLATFORM_SECRET is not set/, services);
    }
    await once({ PLATFORM_SECRET: other, PLATFORM_SECRET_PREVIOUS: shared });
    await once({ PLATFORM_SECRET: shared, PLATFORM_SECRET_PREVIOUS: other });
    await assert.rejects(once({ PLATFORM_SECRET: other }), /another PLATFORM_SECRET/);
    const { rows } = await owner.query<{ text: string }>('SELECT i::text AS text FROM platform.installation i');
    for (const { text } of rows) assert.ok(!text.includes(shared) && !text.includes(other));
  });

  /** One process stays; another one, of the operating system too, does not join it. */
  const keepsOut = async (first: Record<string, string>, second: Record<string, string>): Promise<void> => {
    const common = { SEED_DEMO: 'false', NATS_URL: nats.url };
    const running = await start(readConfig(testEnvironment(own.url, { ...common, SERVICES: 'ratelimit', ...first })));
    try {
      const joining = startProcess({
        services: ['mcp'],
        databaseUrl: own.url,
        natsUrl: nats.url,
        env: { ...common, ...second },
      });
      await assert.rejects(joining, /ended before it was ready.*PLATFORM_SECRET/s);
      await once({ ...common, SERVICES: 'mcp', ...first });
    } finally {
      await running.stop();
    }
  };

  it('refuses a process with a secret beside one without, and stores nothing of it', async () => {
    await once({});
    await keepsOut({}, { PLATFORM_SECRET: secret() });
    await once({});
  });

  it('refuses two different replacements of the shared secret', async () => {
    const [shared, one, other] = [secret(), secret(), secret()];
    await once({ PLATFORM_SECRET: shared });
    const replacing = (PLATFORM_SECRET: string) => ({ PLATFORM_SECRET, PLATFORM_SECRET_PREVIOUS: shared });
    await keepsOut(replacing(one), replacing(other));
  });

  it('accepts processes while the secret is replaced, in either order', async () => {
    const [old, fresh] = [secret(), secret()];
    const common = { SEED_DEMO: 'false', NATS_URL: nats.url };
    await once({ PLATFORM_SECRET: old });
    const env = { ...common, SERVICES: 'ratelimit', PLATFORM_SECRET: old };
    const running = await start(readConfig(testEnvironment(own.url, env)));
    try {
      await once({ ...common, SERVICES: 'mcp', PLATFORM_SECRET: fresh, PLATFORM_SECRET_PREVIOUS: old });
      await once({ ...common, SERVICES: 'mcp', PLATFORM_SECRET: old, PLATFORM_SECRET_PREVIOUS: fresh });
    } finally {
      await running.stop();
    }
  });
});
