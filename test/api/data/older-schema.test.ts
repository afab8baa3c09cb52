/** Tenants of an older version, accessed by data processes of this one before their tables are migrated. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { call } from '../../../contracts/call.ts';
import { TENANT_SCHEMA_VERSION } from '../../../contracts/metadata.ts';
import { Database } from '../../../mixins/database/database.ts';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform, testEnvironment } from '../../support/platform.ts';

const run = promisify(execFile);

describe('a tenant whose tables are of an older version', function () {
  this.timeout(120_000);
  let platform: TestPlatform;
  let owner: Database;
  let user: Api;
  let tenants: { id: string; key: string }[];
  const schemaOf = (id: string): string => `"t_${id.replaceAll('-', '')}"`;
  const script = (name: string) =>
    run(process.execPath, [`scripts/${name}.ts`], {
      env: { ...process.env, ...testEnvironment(platform.database.url) },
    })
      .then(({ stdout, stderr }) => ({ code: 0, stdout, stderr }))
      .catch(({ code, stdout, stderr }) => ({ code: Number(code), stdout: String(stdout), stderr: String(stderr) }));

  /** Resets the schema to the previous version. */
  async function age(id: string): Promise<void> {
    await owner.query(`DROP FUNCTION ${schemaOf(id)}._user_name CASCADE`);
    await owner.query('UPDATE metadata.tenants SET tenant_schema_version = $2 WHERE id = $1', [
      id,
      TENANT_SCHEMA_VERSION - 1,
    ]);
  }
  /** Simulates a missing table of the newer version. */
  const hideEpoch = (id: string): Promise<unknown> =>
    owner.query(`ALTER TABLE ${schemaOf(id)}._epoch RENAME TO _later`);
  const showEpoch = (id: string): Promise<unknown> =>
    owner.query(`ALTER TABLE ${schemaOf(id)}._later RENAME TO _epoch`);
  const versions = async (): Promise<unknown> =>
    (await owner.query('SELECT DISTINCT tenant_schema_version AS version FROM metadata.tenants')).rows;

  before(async () => {
    platform = await startPlatform();
    owner = new Database(platform.database.url, { size: 2, applicationName: 'test' });
    user = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    tenants = (await owner.query<{ id: string; key: string }>('SELECT id, key FROM metadata.tenants ORDER BY key'))
      .rows;
    assert.ok(tenants.length >= 2);
  });
  after(async () => {
    await owner?.close();
    await platform?.stop();
  });

  it('answers 503 where its tables are incomplete, works otherwise, and is updated by migrating', async () => {
    for (const { id } of tenants) {
      await age(id);
      await hideEpoch(id);
    }
    const changes = await user.get('/data/Account/changes');
    assert.deepEqual([changes.status, changes.body.code], [503, 'SERVICE_UNAVAILABLE'], changes.text);
    assert.ok(Number(changes.headers.get('retry-after')) >= 1);
    assert.equal((await user.get('/data/Account')).status, 200);
    const { id } = tenants[0]!;
    await assert.rejects(call(platform.broker, 'data.audit.seal', { tenantId: id }) as Promise<unknown>, {
      code: 'SERVICE_UNAVAILABLE',
    });
    for (const tenant of tenants) await showEpoch(tenant.id);
    const migrated = await script('migrate');
    assert.equal(migrated.code, 0, migrated.stderr);
    assert.match(migrated.stdout, new RegExp(`Upgraded the tables of ${tenants.length} tenants`));
    assert.deepEqual(await versions(), [{ version: TENANT_SCHEMA_VERSION }]);
    assert.equal((await user.get('/data/Account/changes')).status, 200);
    const again = await script('migrate');
    assert.doesNotMatch(again.stdout, /tenants/);
  });

  it('does not block the migration of others, and is named', async () => {
    for (const { id } of tenants) await age(id);
    const [first] = tenants;
    // Blocks the creation of the new function.
    await owner.query(`CREATE FUNCTION ${schemaOf(first!.id)}._user_name() RETURNS void LANGUAGE sql AS ''`);
    const migrated = await script('migrate');
    assert.equal(migrated.code, 1);
    assert.match(migrated.stderr, new RegExp(`^${first!.key}: NOT UP TO DATE: .*_user_name`, 'm'));
    assert.doesNotMatch(migrated.stdout, /The database is up to date/);
    const { rows } = await owner.query('SELECT key FROM metadata.tenants WHERE tenant_schema_version < $1', [
      TENANT_SCHEMA_VERSION,
    ]);
    assert.deepEqual(rows, [{ key: first!.key }]);
    await owner.query(`DROP FUNCTION ${schemaOf(first!.id)}._user_name`);
    assert.equal((await script('migrate')).code, 0);
    assert.deepEqual(await versions(), [{ version: TENANT_SCHEMA_VERSION }]);
  });

  it('begins its new epoch after a restore without a process of metadata', async () => {
    // The database is a copy: sealing begins the epoch of this place now, not between the next statement and the script.
    for (const { id } of tenants) await call(platform.broker, 'data.audit.seal', { tenantId: id });
    for (const { id } of tenants) {
      await age(id);
      await owner.query(`UPDATE ${schemaOf(id)}._epoch SET begun_at = '-infinity'`);
    }
    const restored = await script('restored');
    assert.equal(restored.code, 0, restored.stdout + restored.stderr);
    assert.match(restored.stdout, new RegExp(`of ${tenants.length} of ${tenants.length} tenants start over`));
    assert.equal((await user.get('/data/Account/changes')).status, 200);
  });

  it('must be migrated first when the shared tables are older', async () => {
    await owner.query(`DELETE FROM metadata.migrations WHERE name LIKE '0004-%'`);
    const restored = await script('restored');
    assert.equal(restored.code, 2);
    assert.match(restored.stderr, /metadata lack 0004-\S+: run `npm run migrate`/);
    await owner.query(`INSERT INTO metadata.migrations (name) VALUES ('0004-tenants.sql')`);
  });
});
