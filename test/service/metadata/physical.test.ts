import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { migrateServices } from '../../../main.ts';
import { Database } from '../../../mixins/database/database.ts';
import { IndexUpkeep } from '../../../services/metadata/indexes.ts';
import { eraseDue, listDeletions } from '../../../services/metadata/lifecycle/erase.ts';
import { Snapshots } from '../../../services/metadata/snapshots.ts';
import { createTenant, deployTemplate } from '../../../services/metadata/tenants.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { configuration } from '../../support/metadata-configurations.ts';
import { fieldFile, objectFiles } from '../../support/metadata-tenant.ts';

const mark = (object: string): string => createHash('sha256').update(object).digest('hex').slice(0, 8);

describe('metadata: tables, columns and indexes', () => {
  let test: TestDatabase;
  let database: Database;
  let tenants = 0;
  before(async () => {
    test = await createDatabase();
    database = new Database(test.url, { size: 4, applicationName: 'physical test' });
    await migrateServices(database, ['metadata']);
  });
  after(async () => {
    await database?.close();
    await test?.drop();
  });

  const newTenant = async (): Promise<string> =>
    (await createTenant(database, 'local', { key: `p${tenants++}`.padEnd(2, 'x'), name: 'P' })).tenant.id;

  /** Everything that PostgreSQL knows about the schema, without its name and without the order of columns. */
  const shape = async (tenantId: string): Promise<string[]> => {
    const schema = `t_${tenantId.replaceAll('-', '')}`;
    const { rows } = await database.query<{ line: string }>(
      `SELECT c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || a.attnotnull || a.atthasdef AS line
         FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
         WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'S') AND a.attnum > 0 AND NOT a.attisdropped
       UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = $2
       UNION ALL SELECT conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = $1::regnamespace
       UNION ALL SELECT c.relname || ' ' || c.relacl::text FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relacl IS NOT NULL`,
      [`"${schema}"`, schema],
    );
    return rows.map(({ line }) => line.replaceAll(schema, 'T')).sort();
  };

  it('are the same for a configuration deployed at once or step by step', async function () {
    this.timeout(60_000);
    await fc.assert(
      fc.asyncProperty(configuration, configuration, async (one, two) => {
        const [stepwise, atOnce] = [await newTenant(), await newTenant()];
        if (Object.keys(one).length > 0) await deployTemplate(database, stepwise, one);
        if (Object.keys(two).length > 0) await deployTemplate(database, stepwise, two);
        const both = { ...one, ...two };
        if (Object.keys(both).length > 0) await deployTemplate(database, atOnce, both);
        assert.deepEqual(await shape(stepwise), await shape(atOnce));
      }),
      { numRuns: 25 },
    );
  });

  it('are the same when a rollup that they depend on changes its type', async () => {
    const files = (scale: number): Record<string, string> => ({
      ...objectFiles('Bill__c'),
      'objects/Bill__c/object.yaml': objectFiles('Bill__c')['objects/Bill__c/object.yaml']!.replace(
        'api:',
        'sharingDefault: private\napi:',
      ),
      ...fieldFile(
        'Bill__c',
        'Sum__c',
        'fieldType: rollup\nrollup:\n  childObject: Line__c\n  referenceField: Bill__c\n  function: sum\n  field: Net__c',
      ),
      ...objectFiles('Line__c', {
        Bill__c: 'fieldType: masterDetail\nreferenceTo: [Bill__c]',
        Net__c: `fieldType: decimal\nprecision: 18\nscale: ${scale}`,
      }),
      'groups/All.yaml': 'type: Group\napiName: All\nlabel: All\n',
      'objects/Bill__c/sharingRules/Big.yaml':
        'type: SharingRule\napiName: Big\nobject: Bill__c\nkind: criteria\ncriteria: record.Sum__c > 1000\nto:\n  group: All\naccess: read\n',
    });
    const [stepwise, atOnce] = [await newTenant(), await newTenant()];
    await deployTemplate(database, stepwise, files(2));
    await deployTemplate(database, stepwise, files(4));
    await deployTemplate(database, atOnce, files(4));
    assert.deepEqual(await shape(stepwise), await shape(atOnce));
    assert.ok((await shape(atOnce)).some((line) => line.includes('_Big')));
  });

  it("belong to the tenant's own role, which has no access to other tenants and creates none", async () => {
    const [mine, theirs] = [await newTenant(), await newTenant()];
    const other = `t_${theirs.replaceAll('-', '')}`;
    await database.tenant(mine, async (tx) => {
      await tx.query(`SELECT count(*) FROM ${tx.schema}."User"`);
      await assert.rejects(tx.query(`SELECT count(*) FROM "${other}"."User"`), { code: '42501' });
      await assert.rejects(tx.query('SELECT * FROM metadata.components'), { code: '42501' });
      await assert.rejects(tx.query(`CREATE TABLE ${tx.schema}."X" ()`), { code: '42501' });
      await assert.rejects(tx.query(`ALTER TABLE ${tx.schema}."User" DROP COLUMN name`), { code: '42501' });
      await assert.rejects(tx.query(`DELETE FROM ${tx.schema}._audit`), { code: '42501' });
    });
    const rows = await database.shared('metadata', mine, (tx) =>
      tx.query<{ tenant_id: string }>('SELECT DISTINCT tenant_id FROM metadata.components'),
    );
    assert.deepEqual(rows.rows, [{ tenant_id: mine }]);
    const none = await database.shared('metadata', null, (tx) => tx.query('SELECT FROM metadata.components'));
    assert.equal(none.rowCount, 0);
  });

  it('can be created by a login role that is not a superuser', async () => {
    const role = `plain_${process.pid}_${Date.now()}`;
    const plain = await createDatabase();
    await database.query(`CREATE ROLE ${role} LOGIN CREATEROLE PASSWORD 'plain'`);
    await database.query(`ALTER DATABASE ${plain.name} OWNER TO ${role}`);
    // Roles belong to the server, and this server's services have theirs already.
    await database.query(`GRANT svc_metadata TO ${role}`);
    const url = new URL(plain.url);
    url.username = role;
    url.password = 'plain';
    const own = new Database(url.toString(), { size: 4, applicationName: 'plain role' });
    try {
      await migrateServices(own, ['metadata']);
      const { tenant } = await createTenant(own, 'local', { key: `plain${process.pid}`, name: 'Plain' });
      await deployTemplate(own, tenant.id, objectFiles('A__c', { B__c: 'fieldType: text' }));
      await own.tenant(tenant.id, (tx) => tx.query(`SELECT "B__c" FROM ${tx.schema}."A__c"`));
      const snapshot = await new Snapshots(own).get(tenant.id);
      assert.equal(snapshot?.version, 2);
      // It also makes the indexes that a tenant of an older version lacks.
      await own.query(`DROP INDEX "t_${tenant.id.replaceAll('-', '')}"."_i_${mark('A__c')}_createdAt"`);
      await own.query('UPDATE metadata.tenants SET index_generation = 0');
      assert.deepEqual(await new IndexUpkeep(own, (_, error) => assert.fail(error as Error)).run(), {
        done: 1,
        left: 0,
      });
      // Row-level security holds for the owner of the tables, too.
      assert.equal((await own.query('SELECT FROM metadata.components')).rowCount, 0);
      // And it erases a deleted tenant, to the last role.
      await own.query("UPDATE metadata.tenants SET suspended = true, delete_at = now() - interval '1 minute'");
      const failed = (_: string, error: unknown): never => assert.fail(error as Error);
      await eraseDue(own, {
        eraseContents: async () => 0,
        erased: () => {},
        failed,
        left: (_, remaining) => assert.deepEqual(remaining, {}),
      });
      const [proof] = await listDeletions(own, `plain${process.pid}`);
      assert.deepEqual([proof?.remaining, proof?.rolesRemoved], [{}, true]);
      assert.ok(proof!.removed['metadata.components']! > 5, JSON.stringify(proof));
      const records = `t_${tenant.id.replaceAll('-', '')}`;
      const { rows } = await own.query(`SELECT FROM pg_roles WHERE rolname LIKE '${records}%'`);
      assert.equal(rows.length, 0);
    } finally {
      await own.close();
      await plain.drop();
    }
  });

  it('keep name and display name of a user equal', async () => {
    const tenantId = await newTenant();
    await database.tenant(tenantId, async (tx) => {
      const read = async (): Promise<unknown> =>
        (await tx.query(`SELECT name, "displayName" AS shown FROM ${tx.schema}."User"`)).rows[0];
      await tx.query(
        `INSERT INTO ${tx.schema}."User" (id, "ownerId", "createdAt", "createdById", "updatedAt", "updatedById", "displayName")
          VALUES ($1, $1, now(), $1, now(), $1, 'Ada')`,
        [tenantId],
      );
      assert.deepEqual(await read(), { name: 'Ada', shown: 'Ada' });
      await tx.query(`UPDATE ${tx.schema}."User" SET "displayName" = 'Ada B.'`);
      assert.deepEqual(await read(), { name: 'Ada B.', shown: 'Ada B.' });
      await tx.query(`UPDATE ${tx.schema}."User" SET name = 'Ada C.'`);
      assert.deepEqual(await read(), { name: 'Ada C.', shown: 'Ada C.' });
    });
  });
});
