import assert from 'node:assert/strict';
import { purgeDeleted } from '../../../services/metadata/retention.ts';
import {
  destructiveManifest,
  fieldFile,
  objectFiles,
  type StartedTenant,
  startMetadataTenant,
} from '../../support/metadata-tenant.ts';

describe('metadata: deleted objects and fields after their retention', () => {
  let t: StartedTenant;
  before(async function () {
    this.timeout(60_000);
    t = await startMetadataTenant();
    await t.deployed({
      ...objectFiles('Old__c', { Number__c: 'fieldType: autoNumber\nformat: N-{0}' }),
      ...objectFiles('Kept__c', { Gone__c: 'fieldType: text', Serial__c: 'fieldType: autoNumber\nformat: S-{0}' }),
    });
    const manifest = destructiveManifest({
      CustomObject: ['Old__c'],
      CustomField: ['Kept__c.Gone__c', 'Kept__c.Serial__c'],
    });
    const done = await t.deploy(manifest, { allowDestructiveChanges: true });
    assert.equal(done.status, 'SUCCEEDED', JSON.stringify([done.error, done.blocked]));
    await t.database.query(
      `INSERT INTO ${t.schema}._recycle_bin (object, record_id, root_id, record, record_version, deleted_by_id)
        SELECT 'Old__c', id, id, '{}', 1, id FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 5001)) r`,
    );
  });
  after(() => t?.stop());

  const physical = async (): Promise<string[]> => {
    const { rows } = await t.database.query<{ name: string }>(
      `SELECT c.relname || coalesce('.' || a.attname, '') AS name
        FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND c.relkind = 'r' AND NOT a.attisdropped
        WHERE c.relnamespace = $1::regnamespace AND (a.attname ~ '^(Number|Gone|Serial)__c$' OR c.relkind = 'S')
          AND c.relname !~ '^_outbox' ORDER BY 1`,
      [t.schema],
    );
    return rows.map(({ name }) => name);
  };
  const expire = (names: readonly string[]) =>
    t.database.query(
      `UPDATE metadata.deleted_components SET deleted_at = now() - interval '31 days'
        WHERE tenant_id = $1 AND full_name = ANY($2)`,
      [t.tenantId, names],
    );

  it('are kept until its end', async () => {
    assert.equal(await purgeDeleted(t.database, t.tenantId), 0);
    assert.deepEqual(await physical(), [
      'Kept__c.Gone__c',
      'Kept__c.Serial__c',
      'Old__c.Number__c',
      '_seq_Kept__c_Serial__c',
      '_seq_Old__c_Number__c',
    ]);
  });

  it('are then removed with sequences and record data, which frees their names', async () => {
    const names = ['Old__c', 'Old__c.Number__c', 'Kept__c.Gone__c'];
    await expire(names);
    assert.equal(await purgeDeleted(t.database, t.tenantId), 2);
    assert.deepEqual(await physical(), ['Kept__c.Serial__c', '_seq_Kept__c_Serial__c']);
    const { rows } = await t.database.query<{ n: number }>(
      `SELECT (SELECT count(*) FROM ${t.schema}._recycle_bin WHERE object = 'Old__c')::int
        + (SELECT count(*) FROM metadata.deleted_components WHERE tenant_id = $1)::int AS n`,
      [t.tenantId],
    );
    assert.deepEqual(rows, [{ n: 1 }], 'one field is still kept');
    assert.equal(await purgeDeleted(t.database, t.tenantId), 0);
    await t.deployed({
      ...objectFiles('Old__c', { Number__c: 'fieldType: text' }),
      ...fieldFile('Kept__c', 'Gone__c', 'fieldType: date'),
    });
    await t.database.query(
      `INSERT INTO ${t.schema}."Kept__c" (id, "ownerId", "createdAt", "createdById", "updatedAt", "updatedById", name,
          "Serial__c")
        SELECT id, id, now(), id, now(), id, 'one', 'S-1' FROM (SELECT gen_random_uuid() AS id) r`,
    );
    const { blocked } = await t.validate(fieldFile('Kept__c', 'Serial__c', 'fieldType: text'));
    assert.deepEqual(
      blocked.map(({ code }: { code: string }) => code),
      ['NAME_RESERVED'],
      'a record has a value',
    );
  });

  it('are removed even when another one cannot be', async () => {
    await t.deployed(objectFiles('Stuck__c'));
    const manifest = destructiveManifest({ CustomObject: ['Stuck__c'] });
    assert.equal((await t.deploy(manifest, { allowDestructiveChanges: true })).status, 'SUCCEEDED');
    await expire(['Stuck__c', 'Kept__c.Serial__c']);
    // Somebody's view hangs on the table.
    await t.database.query(`CREATE VIEW public.hangs_on AS SELECT name FROM ${t.schema}."Stuck__c"`);
    await assert.rejects(purgeDeleted(t.database, t.tenantId), AggregateError);
    assert.equal((await physical()).includes('Kept__c.Serial__c'), false);
    await t.database.query('DROP VIEW public.hangs_on');
    assert.equal(await purgeDeleted(t.database, t.tenantId), 1);
  });
});
