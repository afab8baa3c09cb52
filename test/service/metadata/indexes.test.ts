/** Tenants that an older version of the platform made get the indexes that this version works with, while they work. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { migrateServices } from '../../../main.ts';
import { Database } from '../../../mixins/database/database.ts';
import { IndexUpkeep } from '../../../services/metadata/indexes.ts';
import { INDEX_GENERATION } from '../../../services/metadata/physical/indexes.ts';
import { createTenant, deployTemplate } from '../../../services/metadata/tenants.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { fieldFile, objectFiles } from '../../support/metadata-tenant.ts';

const RULE = (criteria: string): Record<string, string> => ({
  'objects/Deal__c/sharingRules/Won.yaml': `type: SharingRule\napiName: Won\nobject: Deal__c\nkind: criteria\ncriteria: ${criteria}\nto:\n  group: All\naccess: read\n`,
});

const FILES: Record<string, string> = {
  ...objectFiles('Account__c', { Tax__c: 'fieldType: text\nunique: true' }),
  ...objectFiles('Deal__c', { Stage__c: 'fieldType: text\nexternalId: true' }),
  'objects/Deal__c/object.yaml':
    'type: CustomObject\napiName: Deal__c\nlabel: Deal\nlabelPlural: Deals\nnameField:\n  label: Name\n  fieldType: text\nsharingDefault: private\nfeatures:\n  search: true\n  duplicates: true\n',
  ...fieldFile('Deal__c', 'Account__c', 'fieldType: reference\nreferenceTo:\n  - Account__c\nonDelete: setNull'),
  'objects/Deal__c/duplicateRules/Alike.yaml':
    'type: DuplicateRule\napiName: Alike\nobject: Deal__c\nactive: true\naction: confirm\nscope: all\nrevealHiddenCount: false\nthreshold: 0.8\nmatch:\n  - field: name\n    method: fuzzy\n    weight: 1.0\n  - field: Stage__c\n    method: normalized\n    weight: 1.0\n',
  'groups/All.yaml': 'type: Group\napiName: All\nlabel: All\n',
  ...RULE('record.Stage__c == "won"'),
};

const mark = (object: string): string => createHash('sha256').update(object).digest('hex').slice(0, 8);
const DEAL = mark('Deal__c');
const UNIQUE = `_u_${mark('Account__c')}_Tax__c`;

describe('metadata: indexes of existing tenants', () => {
  let test: TestDatabase;
  let database: Database;
  let tenants = 0;
  const failures: string[] = [];
  const upkeep = (): IndexUpkeep =>
    new IndexUpkeep(database, (_, error) => failures.push((error as { code?: string }).code ?? String(error)));
  before(async () => {
    test = await createDatabase();
    database = new Database(test.url, { size: 6, applicationName: 'indexes test' });
    await migrateServices(database, ['metadata']);
  });
  afterEach(() => failures.splice(0));
  after(async () => {
    await database?.close();
    await test?.drop();
  });

  const newTenant = async (): Promise<{ id: string; schema: string }> => {
    const { tenant } = await createTenant(database, 'local', { key: `i${tenants++}x`, name: 'I' });
    await deployTemplate(database, tenant.id, FILES);
    return { id: tenant.id, schema: `t_${tenant.id.replaceAll('-', '')}` };
  };
  /** As an older version left it. */
  const age = (id: string): Promise<unknown> =>
    database.query('UPDATE metadata.tenants SET index_generation = 0 WHERE id = $1', [id]);
  const generation = async (id: string): Promise<number> =>
    (await database.query<{ n: number }>('SELECT index_generation AS n FROM metadata.tenants WHERE id = $1', [id]))
      .rows[0]!.n;
  const indexes = async (schema: string): Promise<string[]> =>
    (
      await database.query<{ line: string }>(
        `SELECT pg_get_indexdef(i.indexrelid) || i.indisvalid AS line FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
          WHERE c.relnamespace = $1::regnamespace`,
        [`"${schema}"`],
      )
    ).rows
      .map(({ line }) => line)
      .sort();
  const drop = async (schema: string, ...names: string[]): Promise<void> => {
    for (const name of names) await database.query(`DROP INDEX "${schema}"."${name}"`);
  };
  const insertDeal = (schema: string, stage: string): string =>
    `INSERT INTO "${schema}"."Deal__c" (id, "ownerId", "createdAt", "createdById", "updatedAt", "updatedById", name, "Stage__c")
      SELECT gen_random_uuid(), u, now(), u, now(), u, 'x', '${stage}' FROM gen_random_uuid() u`;

  it('need no maintenance in new tenants', async () => {
    const { id } = await newTenant();
    assert.equal(await generation(id), INDEX_GENERATION);
    assert.deepEqual(await upkeep().run(), { done: 0, left: 0 });
  });

  it('are created where missing, and dropped where not required', async () => {
    const { id, schema } = await newTenant();
    const whole = await indexes(schema);
    await drop(
      schema,
      `_i_${DEAL}_ownerId`,
      `_r_${DEAL}_Won`,
      `_df_${DEAL}_name`,
      `_s_${DEAL}_name`,
      `_i_${DEAL}_createdAt`,
      UNIQUE,
      '_idempotency_expiry',
    );
    await database.query(`CREATE INDEX "_r_${DEAL}_Gone" ON "${schema}"."Deal__c" (name)`);
    await database.query(`CREATE INDEX somebodys ON "${schema}"."Deal__c" (name)`);
    await age(id);
    assert.deepEqual(await upkeep().run(), { done: 1, left: 0 });
    assert.equal(await generation(id), INDEX_GENERATION);
    await drop(schema, 'somebodys'); // and nobody else's
    assert.deepEqual(await indexes(schema), whole);
    assert.deepEqual(failures, []);
  });

  it('replace those of other versions, which serve until then', async () => {
    const { id, schema } = await newTenant();
    const whole = await indexes(schema);
    await drop(schema, `_r_${DEAL}_Won`, UNIQUE);
    await database.query(`CREATE INDEX "_r_${DEAL}_Won" ON "${schema}"."Deal__c" (name)`);
    await database.query(`CREATE INDEX "${UNIQUE}" ON "${schema}"."Account__c" (lower("Tax__c"))`);
    await database.query(`CREATE INDEX "_r_${DEAL}_Won_new" ON "${schema}"."Deal__c" ("Stage__c")`);
    await age(id);
    assert.deepEqual(await upkeep().run(), { done: 1, left: 0 });
    assert.deepEqual(await indexes(schema), whole);
  });

  it('do not block a deployment while missing', async () => {
    const { id, schema } = await newTenant();
    await drop(schema, `_i_${DEAL}_ownerId`, `_r_${DEAL}_Won`);
    await age(id);
    await deployTemplate(database, id, RULE('record.Stage__c == "lost"'));
    await drop(schema, `_r_${DEAL}_Won`);
    await deployTemplate(database, id, {
      'objects/Deal__c/object.yaml': FILES['objects/Deal__c/object.yaml']!.replace('private', 'read'),
    });
    // One that was left over is no use for a rule of its name.
    await database.query(`CREATE INDEX "_r_${DEAL}_Won" ON "${schema}"."Deal__c" (name)`);
    await deployTemplate(database, id, { 'objects/Deal__c/object.yaml': FILES['objects/Deal__c/object.yaml']! });
    const rule = (await indexes(schema)).find((line) => line.includes(`_r_${DEAL}_Won`));
    assert.match(rule!, /WHERE .*'lost'/);
    assert.deepEqual(await upkeep().run(), { done: 1, left: 0 });
  });

  it('are built concurrently with writers, and rebuilt when their builder died', async function () {
    this.timeout(30_000);
    const { id, schema } = await newTenant();
    const whole = await indexes(schema);
    await drop(schema, `_i_${DEAL}_ownerId`, `_r_${DEAL}_Won`);
    await age(id);
    const writer = await database.pool.connect();
    const maker = async (): Promise<number> => {
      for (;;) {
        const { rows } = await database.query<{ pid: number }>(
          `SELECT pid FROM pg_stat_activity WHERE query LIKE '% INDEX CONCURRENTLY %' AND wait_event_type = 'Lock' AND pid <> pg_backend_pid() AND datname = current_database()`,
        );
        if (rows[0]) return rows[0].pid;
        await pause(20);
      }
    };
    try {
      await writer.query('BEGIN');
      await writer.query(insertDeal(schema, 'won'));
      const first = upkeep();
      const running = first.run();
      const pid = await maker();
      await database.query(insertDeal(schema, 'won')); // another writer does not wait
      // Nor is there a second maker.
      assert.deepEqual(await upkeep().run(), { done: 0, left: 1 });
      await database.query('SELECT pg_terminate_backend($1)', [pid]);
      assert.deepEqual(await running, { done: 0, left: 1 });
      assert.ok(
        (await indexes(schema)).some((line) => line.endsWith('false')),
        'half an index is left',
      );
      // A process that stops gives up.
      const stopped = upkeep();
      stopped.start();
      await maker();
      await stopped.stop();
      assert.equal(await generation(id), 0);
    } finally {
      await writer.query('COMMIT');
      writer.release();
    }
    assert.deepEqual(await upkeep().run(), { done: 1, left: 0 });
    assert.deepEqual(await indexes(schema), whole);
    assert.deepEqual(failures.length, 1, String(failures));
  });

  it('that fail for one tenant do not block those of others', async () => {
    const [one, other] = [await newTenant(), await newTenant()];
    await drop(one.schema, UNIQUE);
    await drop(other.schema, `_r_${DEAL}_Won`);
    for (const _ of [1, 2])
      await database.query(
        `INSERT INTO "${one.schema}"."Account__c" (id, "ownerId", "createdAt", "createdById", "updatedAt", "updatedById", name, "Tax__c")
          SELECT gen_random_uuid(), u, now(), u, now(), u, 'x', 'same' FROM gen_random_uuid() u`,
      );
    await age(one.id);
    await age(other.id);
    assert.deepEqual(await upkeep().run(), { done: 1, left: 1 });
    assert.deepEqual(failures, ['23505']);
    assert.deepEqual([await generation(one.id), await generation(other.id)], [0, INDEX_GENERATION]);
  });
});
