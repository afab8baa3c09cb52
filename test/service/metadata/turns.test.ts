import assert from 'node:assert/strict';
import { createMetadataTenant, fieldFile, type MetadataTenant, objectFiles } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

describe('metadata: deployments of several tenants', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  const tenants: MetadataTenant[] = [];
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform({ seed: false });
    for (let n = 0; n < 3; n++) {
      tenants.push(await createMetadataTenant(platform));
      await tenants[n]!.deployed(objectFiles('Turn__c'));
    }
  });
  after(async () => {
    for (const { database } of tenants) await database.close();
    await platform?.stop();
  });

  it('are interleaved fairly, regardless of the queues of other tenants', async () => {
    const [one, two, three] = tenants as [MetadataTenant, MetadataTenant, MetadataTenant];
    const field = (n: number) => fieldFile('Turn__c', `Field${n}__c`, 'fieldType: text');
    await one.database.query(`CREATE FUNCTION metadata.slow() RETURNS event_trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_sleep(0.4); END $$`);
    await one.database.query('CREATE EVENT TRIGGER slow_ddl ON ddl_command_end EXECUTE FUNCTION metadata.slow()');
    try {
      const queued: [MetadataTenant, string][] = [];
      for (let n = 0; n < 10; n++)
        for (const tenant of [one, two]) queued.push([tenant, (await tenant.accept(field(n))).deploymentId]);
      const { deploymentId } = await three.accept(field(0));
      assert.equal((await three.finished(deploymentId)).status, 'SUCCEEDED');
      const states = await Promise.all(queued.map(([tenant, id]) => tenant.state(id)));
      const waiting = states.filter((state) => state === 'QUEUED').length;
      assert.ok(waiting >= 8, `${waiting} of the others still wait`);
      for (const [tenant, id] of queued) assert.equal((await tenant.finished(id)).status, 'SUCCEEDED');
    } finally {
      await one.database.query('DROP EVENT TRIGGER slow_ddl');
    }
  });
});
