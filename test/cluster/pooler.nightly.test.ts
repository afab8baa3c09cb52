/** PgBouncer between the platform and PostgreSQL. Source: docs/reference/operations-cluster.md#a-connection-pooler. */
import assert from 'node:assert/strict';
import { migrateServices } from '../../main.ts';
import { Database } from '../../mixins/database/database.ts';
import { derivedUrl, derivePassword } from '../../mixins/database/logins.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { createTenantOverHttp } from '../support/metadata-tenant.ts';
import { hasPgBouncer, type PgBouncer, startPgBouncer } from '../support/pgbouncer.ts';
import { startPlatform } from '../support/platform.ts';

const EXPECTED = {
  TimeZone: 'UTC',
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'iso_8601',
  standard_conforming_strings: 'on',
  lock_timeout: '2s',
  statement_timeout: '25s',
  idle_in_transaction_session_timeout: '30s',
  jit: 'off',
};

describe('a connection pooler', function () {
  this.timeout(120_000);
  let server: TestDatabase;
  const poolers: PgBouncer[] = [];
  const databases: Database[] = [];
  before(async function () {
    // scripts/test.ts has installed it where it may.
    if (!hasPgBouncer()) return this.skip();
    server = await createDatabase();
  });
  afterEach(async () => {
    await Promise.all(databases.splice(0).map((database) => database.close()));
    await Promise.all(poolers.splice(0).map((pooler) => pooler.stop()));
  });
  after(() => server?.drop());

  const pooled = async (mode?: string): Promise<string> => {
    const pooler = await startPgBouncer(server.url, mode);
    poolers.push(pooler);
    return pooler.url;
  };
  const opened = (url: string, size = 3): Database => {
    const database = new Database(url, { size, applicationName: 'pooler test' });
    databases.push(database);
    return database;
  };
  /** Sessions at the same time, each with the settings that it has. */
  const settingsOf = (database: Database): Promise<unknown[]> =>
    Promise.all(
      [1, 2, 3].map(() =>
        database.login(async (tx) => {
          await tx.query('SELECT pg_sleep(0.05)');
          const columns = Object.keys(EXPECTED).map((name) => `current_setting('${name}') AS "${name}"`);
          return (await tx.query(`SELECT ${columns.join(', ')}`)).rows[0];
        }),
      ),
    );

  it('in session mode serves the whole platform', async () => {
    const url = await pooled();
    const platform = await startPlatform({ seed: false, database: { name: 'erp', url, drop: async () => {} } });
    try {
      const admin = await createTenantOverHttp(platform);
      const { body } = await admin.get('/identity');
      const user = await admin.get(`/data/User/${body.user.id}`);
      const changed = await admin.patch(
        `/data/User/${body.user.id}`,
        { displayName: 'By a pooler' },
        {
          etag: user.headers.get('etag')!,
        },
      );
      assert.equal(changed.status, 200, changed.text);
      assert.match(changed.body.updatedAt, /\+00:00$/);
    } finally {
      await platform.stop();
    }
  });

  it('applies session settings of a login without a statement', async () => {
    const owner = opened(server.url);
    await migrateServices(owner, ['data']);
    const url = new URL(derivedUrl(await pooled(), 'data')!);
    await derivePassword(owner, 'data', derivedUrl(server.url, 'data')!, true);
    const { rows } = await owner.query<{ settings: string[] }>(
      `SELECT setconfig AS settings FROM pg_db_role_setting
        WHERE setrole = 'login_data'::regrole AND setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    );
    assert.equal(rows[0]?.settings.length, Object.keys(EXPECTED).length);
    assert.deepEqual(await settingsOf(opened(url.href)), [EXPECTED, EXPECTED, EXPECTED]);
  });

  it('gives a login without such settings those of the session', async () => {
    assert.deepEqual(await settingsOf(opened(await pooled())), [EXPECTED, EXPECTED, EXPECTED]);
    assert.deepEqual(await settingsOf(opened(server.url)), [EXPECTED, EXPECTED, EXPECTED]);
  });

  for (const mode of ['transaction', 'statement'])
    it(`in ${mode} mode is refused, with a remedy`, async () => {
      const database = opened(await pooled(mode));
      for (let attempt = 1; attempt <= 3; attempt++)
        await assert.rejects(database.query('SELECT 1'), /set pool_mode = session for this database/);
      assert.equal(database.failures.get('pooler'), 3);
    });

  it('restarted in transaction mode is refused as well', async () => {
    const url = await pooled();
    const database = opened(url);
    await database.query('SELECT 1');
    await poolers.pop()!.stop();
    poolers.push(await startPgBouncer(server.url, 'transaction', Number(new URL(url).port)));
    await assert.rejects(database.query('SELECT 1'), /set pool_mode = session for this database/);
  });
});
