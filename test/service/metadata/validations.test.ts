import assert from 'node:assert/strict';
import { fieldFile, objectFiles, type StartedTenant, startMetadataTenant } from '../../support/metadata-tenant.ts';

describe('metadata: a recorded validation during writes', function () {
  this.timeout(60_000);
  let t: StartedTenant;
  before(async function () {
    this.timeout(120_000);
    t = await startMetadataTenant();
    await t.deployed(objectFiles('Big__c', { Code__c: 'fieldType: text', Word__c: 'fieldType: text' }));
    await t.deployed(objectFiles('Small__c', { Code__c: 'fieldType: text' }));
    await t.database.query(
      `INSERT INTO ${t.schema}."Big__c"
          (id, "ownerId", "createdAt", "createdById", "updatedAt", "updatedById", name, "Code__c", "Word__c")
        SELECT gen_random_uuid(), $1, now(), $1, now(), $1, 'n' || i, 'c' || i, repeat('w', 100)
        FROM generate_series(1, 10000) i`,
      [t.users['admin']],
    );
  });
  after(() => t?.stop());

  const validated = (files: Record<string, string>) => t.deploy(files, { checkOnly: true });
  /** While a write is under way, which the lock of the configuration would have to wait for. */
  const whileWriting = async <T>(work: () => Promise<T>): Promise<T> => {
    const writer = await t.database.pool.connect();
    try {
      await writer.query('BEGIN');
      await writer.query(`SELECT FROM ${t.schema}._state FOR SHARE`);
      return await work();
    } finally {
      await writer.query('ROLLBACK');
      writer.release();
    }
  };

  it('does not take the configuration lock when a changed table is large', async () => {
    const seen = await whileWriting(async () => [
      await validated(fieldFile('Big__c', 'Number__c', 'fieldType: autoNumber\nformat: "N-{0000}"')),
      await validated(fieldFile('Big__c', 'Code__c', 'fieldType: text\nunique: true')),
    ]);
    assert.deepEqual(
      seen.map(({ status, error }) => [status, error]),
      [
        ['SUCCEEDED', null],
        ['SUCCEEDED', null],
      ],
    );
    assert.equal(seen[0].changes.creates[0].impact.records, 10_000);
  });

  it('checks the records nevertheless', async () => {
    const refused = await whileWriting(() =>
      validated(fieldFile('Big__c', 'Word__c', 'fieldType: text\nunique: true')),
    );
    assert.deepEqual([refused.status, refused.error.code], ['FAILED', 'PLAN_BLOCKED']);
    assert.equal(refused.blocked[0].details.records, 10_000);
  });

  it('reports errors of the database', async () => {
    await t.database.query(`CREATE TABLE ${t.schema}."Taken__c" ()`);
    const refused = await validated({
      ...objectFiles('Taken__c'),
      ...fieldFile('Small__c', 'Code__c', 'fieldType: text\nunique: true'),
    });
    assert.deepEqual([refused.status, refused.error.code], ['FAILED', 'APPLY_FAILED']);
    await t.database.query(`DROP TABLE ${t.schema}."Taken__c"`);
  });

  it('blocks writers only briefly', async () => {
    await t.database.query(`CREATE FUNCTION metadata.slow() RETURNS event_trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_sleep(1); END $$`);
    await t.database.query('CREATE EVENT TRIGGER slow_ddl ON ddl_command_end EXECUTE FUNCTION metadata.slow()');
    try {
      const began = performance.now();
      const names = Array.from({ length: 30 }, (_, n) => objectFiles(`Many${n}__c`));
      const done = await validated(Object.assign({}, ...names));
      assert.equal(done.status, 'SUCCEEDED', JSON.stringify(done.error));
      assert.ok(performance.now() - began < 25_000, 'not as long as the DDL takes');
    } finally {
      await t.database.query('DROP EVENT TRIGGER slow_ddl');
    }
    assert.equal((await t.retrieve({ CustomObject: ['Many0__c'] })).notFound.length, 1);
  });
});
