/** The mechanism of upgrades: numbered migrations, the version of tenants' schemas, and configurations of an earlier compiler. */
import assert from 'node:assert/strict';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TENANT_SCHEMA_VERSION } from '../../../contracts/metadata.ts';
import { tenantSchema } from '../../../lib/context.ts';
import { migrateServices } from '../../../main.ts';
import { Database } from '../../../mixins/database/database.ts';
import { migrate } from '../../../mixins/database/migrate.ts';
import { createTenant, deployTemplate, upgradeTenants } from '../../../services/metadata/tenants.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { objectFiles } from '../../support/metadata-tenant.ts';
import { dumpSchema } from '../../support/schema-dump.ts';
import { root } from '../../support/sources.ts';

describe('metadata: upgrades', () => {
  let test: TestDatabase;
  let database: Database;
  before(async () => {
    test = await createDatabase();
    database = new Database(test.url, { size: 4, applicationName: 'upgrade test' });
    await migrateServices(database, ['data', 'metadata']);
  });
  after(async () => {
    await database?.close();
    await test?.drop();
  });

  describe('a migration of the next version', () => {
    const released = join(root, 'services/data/migrations');
    const store = (name: string): Promise<unknown> =>
      database.query('INSERT INTO data.secrets (name, secret) VALUES ($1, $2)', [name, Buffer.of(1)]);
    const notes = async (): Promise<unknown[]> =>
      (await database.query('SELECT name, note FROM data.secrets ORDER BY name')).rows;
    let next: string;
    before(async () => {
      next = await mkdtemp(join(tmpdir(), 'erp-migrations-'));
      await cp(released, next, { recursive: true });
    });
    after(() => rm(next, { recursive: true }));

    it('runs once, keeps rows, and leaves processes of the released version working', async () => {
      await store('before');
      await writeFile(
        join(next, '0002-notes.sql'),
        "ALTER TABLE data.secrets ADD COLUMN note text NOT NULL DEFAULT '-'",
      );
      assert.deepEqual(await migrate(database, 'data', next), ['0002-notes.sql']);
      assert.deepEqual(await migrate(database, 'data', next), []);
      await store('while');
      assert.deepEqual(await migrate(database, 'data', released), [], 'the way back');
      assert.deepEqual(await notes(), [
        { name: 'before', note: '-' },
        { name: 'while', note: '-' },
      ]);
    });

    it('leaves nothing when it fails, and runs when it has been corrected', async () => {
      const file = join(next, '0003-more.sql');
      await writeFile(file, 'CREATE TABLE data.more (id integer); ALTER TABLE data.missing ADD COLUMN id integer');
      await assert.rejects(migrate(database, 'data', next), /missing/);
      await writeFile(file, 'CREATE TABLE data.more (id integer)');
      assert.deepEqual(await migrate(database, 'data', next), ['0003-more.sql']);
    });
  });

  describe('a tenant of an earlier version', () => {
    let tenantId: string;
    let whole: string;
    const dump = (): Promise<string> => dumpSchema(database, tenantSchema(tenantId));
    /** Takes the schema back by one version. */
    const age = async (): Promise<void> => {
      await database.query(`DROP FUNCTION ${tenantSchema(tenantId)}._user_name CASCADE`);
      await database.query('UPDATE metadata.tenants SET tenant_schema_version = $2 WHERE id = $1', [
        tenantId,
        TENANT_SCHEMA_VERSION - 1,
      ]);
      assert.notEqual(await dump(), whole);
    };
    before(async () => {
      tenantId = (await createTenant(database, 'local', { key: 'earlier', name: 'Earlier' })).tenant.id;
      whole = await dump();
    });

    it('has the schema of a new tenant after the upgrade', async () => {
      await age();
      assert.equal(await upgradeTenants(database), 1);
      assert.equal(await dump(), whole);
      assert.equal(await upgradeTenants(database), 0);
    });

    it('is upgraded by its first deployment when an earlier process creates it during a rolling upgrade', async () => {
      await age();
      assert.ok((await deployTemplate(database, tenantId, objectFiles('First__c'))).applied);
      assert.equal(await upgradeTenants(database), 0);
      assert.ok((await dump()).includes('_user_name'));
    });

    it('has its configuration compiled again once', async () => {
      const version = async (): Promise<number> =>
        (
          await database.query<{ version: number }>(
            'SELECT metadata_version AS version FROM metadata.tenants WHERE id = $1',
            [tenantId],
          )
        ).rows[0]!.version;
      const before = await version();
      // An earlier process does not set it.
      await database.query('UPDATE metadata.tenants SET compiled_version = compiled_version - 1 WHERE id = $1', [
        tenantId,
      ]);
      assert.equal(await upgradeTenants(database), 1);
      assert.equal(await version(), before + 1);
      assert.equal(await upgradeTenants(database), 0);
    });
  });
});
