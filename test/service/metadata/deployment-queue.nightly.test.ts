/** How processes find the deployments that they work on, and leave them. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { deploymentQueue } from '../../../services/metadata/deployments/queue.ts';
import { DeploymentWorker } from '../../../services/metadata/deployments/run.ts';
import { Planning } from '../../../services/metadata/planning/planning.ts';
import { createMetadataTenant, fieldFile, type MetadataTenant, objectFiles } from '../../support/metadata-tenant.ts';
import { createPlatformDatabase, startPlatform, type TestPlatform } from '../../support/platform.ts';
import { insertQuietly } from '../../support/quiet-deployment.ts';

describe('metadata: the queue of deployments', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let t: MetadataTenant;
  const planning = new Planning();
  const workerOf = ({ database, platform: { config } }: MetadataTenant): DeploymentWorker =>
    new DeploymentWorker(database, {
      planning,
      leaseSeconds: 60,
      rateLimits: config.rateLimits,
      committed: () => {},
      failed: (error) => assert.fail(String(error)),
    });
  const setDeployment = (deploymentId: string, sql: string): Promise<unknown> =>
    t.database.query(`UPDATE metadata.deployments SET ${sql} WHERE deployment_id = $1`, [deploymentId]);
  before(async () => {
    platform = await startPlatform({ seed: false });
    t = await createMetadataTenant(platform);
  });
  after(async () => {
    await planning.close();
    await t?.database.close();
    await platform?.stop();
  });

  it('skips for a while a tenant whose deployments only newer workers may take', async () => {
    const { rows } = await t.database.query<{ fence: string }>(
      "SELECT pg_get_functiondef('metadata.fence_workers'::regproc) AS fence",
    );
    const { fence } = rows[0]!;
    await t.database.query(fence.replace("text := '1:'", "text := '2:'"));
    const deploymentId = await insertQuietly(t, objectFiles('Newer__c'));
    await setDeployment(deploymentId, 'lease_until = NULL');
    let claims = 0;
    const worker = workerOf(t);
    const queue = deploymentQueue(t.database, {
      run: (tenantId) => {
        claims++;
        return worker.run(tenantId);
      },
      failed: (error) => assert.fail(String(error)),
    });
    queue.wake();
    await pause(3_000);
    await queue.stop(8_000);
    assert.ok(claims >= 1 && claims <= 3, `${claims} claims in 3 s`);
    await t.database.query(fence);
    assert.equal((await t.finished(deploymentId)).status, 'SUCCEEDED');
  });

  it('takes started deployments without a lease', async () => {
    const deploymentId = await insertQuietly(t, objectFiles('Leaseless__c'));
    await setDeployment(
      deploymentId,
      `status = 'APPLYING', lease_token = '${uuidv7()}', lease_until = NULL, takes = 1`,
    );
    assert.equal((await t.finished(deploymentId)).status, 'SUCCEEDED');
  });

  it('releases running deployments at the start of a stop, while requests are still answered', async () => {
    const database = await createPlatformDatabase({ seed: false });
    const stopping = await startPlatform({ seed: false, database });
    const tenant = await createMetadataTenant(stopping);
    const blocker = await tenant.database.pool.connect();
    let stopped: Promise<void> | undefined;
    try {
      await blocker.query('BEGIN');
      await blocker.query(`LOCK TABLE ${tenant.schema}."User" IN ACCESS SHARE MODE`);
      const { deploymentId } = await tenant.accept(fieldFile('User', 'Handed__c', 'fieldType: text'));
      const is = async (condition: string): Promise<boolean> => {
        const sql = `SELECT FROM metadata.deployments WHERE deployment_id = $1 AND ${condition}`;
        return (await tenant.database.query(sql, [deploymentId])).rowCount > 0;
      };
      while (!(await is("status = 'APPLYING'"))) await pause(20);

      stopped = stopping.stop({ graceMs: 20_000, noticeMs: 0, totalMs: 40_000 });
      const asked = performance.now();
      while (!(await is('lease_token IS NULL'))) await pause(20);
      const ms = performance.now() - asked;
      assert.ok(ms < 15_000, `given back after ${Math.round(ms)} ms`);
      assert.equal((await fetch(`${stopping.baseUrl}/healthz`)).status, 200);
      await blocker.query('ROLLBACK');
      assert.equal(await workerOf(tenant).run(tenant.tenantId), true);
      assert.ok(await is("status = 'SUCCEEDED' AND takes = 1"), 'the stop does not count as a lost worker');
    } finally {
      blocker.release(true);
      await (stopped ?? stopping.stop());
      await tenant.database.close();
      await database.drop();
    }
  });
});
