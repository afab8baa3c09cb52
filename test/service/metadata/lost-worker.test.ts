import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { DeploymentWorker } from '../../../services/metadata/deployments/run.ts';
import { Planning } from '../../../services/metadata/planning/planning.ts';
import { fieldFile, objectFiles, type StartedTenant, startMetadataTenant } from '../../support/metadata-tenant.ts';
import { insertQuietly } from '../../support/quiet-deployment.ts';

describe('metadata: a lost worker', () => {
  let t: StartedTenant;
  before(async function () {
    this.timeout(60_000);
    t = await startMetadataTenant();
  });
  after(() => t?.stop());

  const setLease = (deploymentId: string, sql: string): Promise<unknown> =>
    t.database.query(`UPDATE metadata.deployments SET ${sql} WHERE deployment_id = $1`, [deploymentId]);
  const column = async (): Promise<number> =>
    (
      await t.database.query(
        `SELECT FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = 'Half__c' AND NOT attisdropped`,
        [`${t.schema}."User"`],
      )
    ).rowCount;

  it('leaves no partial change when killed while applying, and another takes over after the lease', async function () {
    this.timeout(30_000);
    const files = { ...objectFiles('First__c'), ...fieldFile('User', 'Half__c', 'fieldType: text') };
    const deploymentId = await insertQuietly(t, files);
    const blocker = await t.database.pool.connect();
    try {
      // The new table is made, then the worker waits for the lock on User.
      await blocker.query('BEGIN');
      await blocker.query(`LOCK TABLE ${t.schema}."User" IN ACCESS SHARE MODE`);
      const worker = spawn(
        process.execPath,
        ['--input-type=module', '-e', "await import('./worker-process.ts')", t.platform.database.url, t.tenantId, '60'],
        { cwd: import.meta.dirname, stdio: ['ignore', 'inherit', 'inherit'] },
      );
      const waiting = async (): Promise<boolean> =>
        (
          await t.database.query(
            `SELECT FROM pg_stat_activity WHERE datname = current_database()
              AND application_name LIKE 'deployment %' AND wait_event_type = 'Lock'`,
          )
        ).rowCount > 0;
      while (!(await waiting())) await new Promise((resolve) => setTimeout(resolve, 20));
      worker.kill('SIGKILL');
      await once(worker, 'exit');
    } finally {
      await blocker.query('ROLLBACK');
      blocker.release();
    }
    const { json: lost } = await t.call('metadata.deployments.get', { path: { deploymentId } });
    assert.equal(lost.status, 'APPLYING');
    assert.equal(await column(), 0);
    assert.deepEqual(
      (await t.retrieve({ CustomObject: ['First__c'] })).files['objects/First__c/object.yaml'],
      undefined,
    );

    await setLease(deploymentId, 'lease_until = now()');
    const next = await t.deploy(objectFiles('Second__c'));
    const retaken = await t.finished(deploymentId);
    assert.deepEqual([retaken.status, next.status], ['SUCCEEDED', 'SUCCEEDED']);
    assert.equal(next.metadataVersionBefore, retaken.metadataVersionAfter, 'in order');
    assert.equal(await column(), 1);
  });

  it('takes over leases from before the database clock was set back', async () => {
    const deploymentId = await insertQuietly(t, objectFiles('Yesterday__c'));
    await setLease(
      deploymentId,
      `status = 'APPLYING', lease_token = '${uuidv7()}', lease_until = now() + interval '1 h'`,
    );
    assert.equal((await t.finished(deploymentId)).status, 'SUCCEEDED');
  });

  it('gives up after three lost workers', async () => {
    const deploymentId = await insertQuietly(t, objectFiles('Never__c'));
    await setLease(deploymentId, "status = 'APPLYING', takes = 3, lease_until = now()");
    assert.equal((await t.deploy(objectFiles('Third__c'))).status, 'SUCCEEDED');
    const given = await t.finished(deploymentId);
    assert.deepEqual([given.status, given.error.code], ['FAILED', 'WORKER_LOST']);
  });

  it('keeps later deployments waiting while a worker holds the first', async () => {
    const deploymentId = await insertQuietly(t, objectFiles('Held__c'));
    const lease = `lease_token = '${uuidv7()}', lease_until = now() + interval '2 s'`;
    await setLease(deploymentId, `status = 'APPLYING', ${lease}`);
    const behind = await t.accept(objectFiles('Fourth__c'));
    const { json: waits } = await t.call('metadata.deployments.get', { path: { deploymentId: behind.deploymentId } });
    assert.deepEqual([waits.status, waits.progress.position], ['QUEUED', 1]);
    await setLease(deploymentId, "status = 'FAILED', lease_token = NULL, finished_at = now()");
    assert.equal((await t.finished(behind.deploymentId)).status, 'SUCCEEDED');
  });

  it('cannot commit after its lease went to another one', async () => {
    const deploymentId = await insertQuietly(t, fieldFile('User', 'Fenced__c', 'fieldType: text'));
    const blocker = await t.database.pool.connect();
    await blocker.query('BEGIN');
    await blocker.query(`LOCK TABLE ${t.schema}."User" IN ACCESS SHARE MODE`);
    const planning = new Planning();
    const runner = new DeploymentWorker(t.database, {
      planning,
      leaseSeconds: 60,
      rateLimits: t.platform.config.rateLimits,
      committed: () => assert.fail('committed without the lease'),
      failed: (error) => assert.fail(String(error)),
    });
    const running = runner.run(t.tenantId);
    const applying = async (): Promise<boolean> =>
      (
        await t.database.query("SELECT FROM metadata.deployments WHERE deployment_id = $1 AND status = 'APPLYING'", [
          deploymentId,
        ])
      ).rowCount > 0;
    while (!(await applying())) await new Promise((resolve) => setTimeout(resolve, 10));
    await setLease(deploymentId, `lease_token = '${uuidv7()}', lease_until = now() + interval '5 min'`);
    await blocker.query('ROLLBACK');
    blocker.release();
    await running;
    await planning.close();
    const { rowCount } = await t.database.query(
      `SELECT FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = 'Fenced__c'`,
      [`${t.schema}."User"`],
    );
    assert.equal(rowCount, 0);
    await setLease(deploymentId, "status = 'FAILED', lease_token = NULL, finished_at = now()");
  });

  it('releases its deployment when it stops, and does not count as lost', async () => {
    const deploymentId = await insertQuietly(t, fieldFile('User', 'Stopped__c', 'fieldType: text'));
    const blocker = await t.database.pool.connect();
    await blocker.query('BEGIN');
    await blocker.query(`LOCK TABLE ${t.schema}."User" IN ACCESS SHARE MODE`);
    const planning = new Planning();
    const runner = new DeploymentWorker(t.database, {
      planning,
      leaseSeconds: 60,
      rateLimits: t.platform.config.rateLimits,
      committed: () => assert.fail('committed'),
      failed: (error) => assert.fail(String(error)),
    });
    const running = runner.run(t.tenantId);
    while ((await t.state(deploymentId)) !== 'APPLYING') await new Promise((resolve) => setTimeout(resolve, 10));
    const stopped = performance.now();
    runner.stop();
    await assert.rejects(running);
    assert.ok(performance.now() - stopped < 20_000, 'while the table is still locked');
    const { rows } = await t.database.query<{ takes: number; free: boolean }>(
      'SELECT takes, lease_until < now() AS free FROM metadata.deployments WHERE deployment_id = $1',
      [deploymentId],
    );
    assert.deepEqual(rows, [{ takes: 0, free: true }]);
    await blocker.query('ROLLBACK');
    blocker.release();
    await planning.close();
    await t.deployed(objectFiles('AfterStop__c'));
    assert.equal((await t.finished(deploymentId)).status, 'SUCCEEDED');
  });

  it('of an older version does not take or end deployments of this version during a roll-out', async () => {
    const deploymentId = await insertQuietly(t, objectFiles('Fence__c'));
    const token = uuidv7();
    const asOlder = (text: string): Promise<number> =>
      t.database.shared(
        'metadata',
        t.tenantId,
        async (tx) => (await tx.query({ text, values: [t.tenantId, token] })).rowCount,
      );
    const open = "('QUEUED', 'VALIDATING', 'APPLYING', 'CANCELING')";
    const claim = `UPDATE metadata.deployments SET status = 'VALIDATING', stage = 'validate', done = 0, takes = takes + 1,
        lease_token = $2, lease_until = now() + make_interval(secs => 60), started_at = coalesce(started_at, now())
      WHERE tenant_id = $1 AND deployment_id = (
        SELECT deployment_id FROM metadata.deployments WHERE tenant_id = $1 AND status IN ${open}
        ORDER BY queue_number LIMIT 1 FOR UPDATE)
        AND (status = 'QUEUED' OR lease_until < now())`;
    const finish = `UPDATE metadata.deployments SET status = 'SUCCEEDED', stage = 'done', finished_at = now(),
        lease_token = NULL, lease_until = NULL
      WHERE tenant_id = $1 AND lease_token = $2 AND status IN ${open}`;
    assert.equal(await asOlder(claim), 0, 'takes one that waits');
    await setLease(
      deploymentId,
      `status = 'APPLYING', lease_token = '${token}', lease_until = now() + interval '5 min'`,
    );
    assert.equal(await asOlder(finish), 0, 'ends one that it had before the roll-out');
    await setLease(deploymentId, "status = 'CANCELING', lease_until = now() - interval '1 s'");
    assert.equal(await asOlder(finish), 0, 'ends one that is being canceled');
    assert.equal(await asOlder(claim), 0, 'takes one that is being canceled');
    assert.equal((await t.deploy(objectFiles('Behind__c'))).status, 'SUCCEEDED');
    assert.equal(await t.state(deploymentId), 'CANCELED');
  });

  it('continues after the database has dropped every connection', async () => {
    await t.database.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> 'metadata test'`,
    );
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.equal((await t.deploy(objectFiles('After__c'))).status, 'SUCCEEDED');
  });
});
