import assert from 'node:assert/strict';
import { freePort } from '../../../mixins/database/embedded.ts';
import { createMetadataTenant, fieldFile, type MetadataTenant } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { insertQuietly } from '../../support/quiet-deployment.ts';

describe('metadata: operator view of deployments', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let metrics: string;
  let one: MetadataTenant;
  let two: MetadataTenant;
  before(async function () {
    this.timeout(120_000);
    const port = await freePort();
    metrics = `http://127.0.0.1:${port}/metrics`;
    platform = await startPlatform({ seed: false, env: { HEALTH_PORT: String(port) } });
    one = await createMetadataTenant(platform);
    two = await createMetadataTenant(platform);
  });
  after(async () => {
    await one?.database.close();
    await two?.database.close();
    await platform?.stop();
  });

  const call = <T>(action: string, params: object = {}): Promise<T> => platform.broker.call(action, params);
  type Open = { deployments: { tenantId: string; deploymentId: string; status: string; takes: number }[] };
  const listed = async (params: object = {}): Promise<[tenantId: string, deploymentId: string, status: string][]> =>
    (await call<Open>('metadata.tenants.listDeployments', params)).deployments.map(
      ({ tenantId, deploymentId, status }) => [tenantId, deploymentId, status],
    );

  it('lists them for one tenant or all, and audits a cancellation', async () => {
    assert.deepEqual(await listed(), []);
    const first = await insertQuietly(one, fieldFile('User', 'One__c', 'fieldType: text'));
    const second = await insertQuietly(two, fieldFile('User', 'Two__c', 'fieldType: text'));
    assert.deepEqual(await listed(), [
      [one.tenantId, first, 'QUEUED'],
      [two.tenantId, second, 'QUEUED'],
    ]);
    assert.deepEqual(await listed({ tenantId: two.tenantId }), [[two.tenantId, second, 'QUEUED']]);

    const cancel = (tenantId: string, deploymentId: string): Promise<{ status: string }> =>
      call('metadata.tenants.cancelDeployment', { tenantId, deploymentId, reason: 'Month end.' });
    await assert.rejects(cancel(one.tenantId, second), { code: 'DEPLOYMENT_NOT_FOUND' });
    await assert.rejects(cancel(one.tenantId, 'x'), { code: 'PARAMETER_INVALID' });
    assert.equal((await cancel(one.tenantId, first)).status, 'CANCELED');
    await assert.rejects(cancel(one.tenantId, first), { code: 'DEPLOYMENT_NOT_CANCELABLE' });
    const done = await one.finished(first);
    assert.deepEqual([done.status, done.cancelReason, done.canceledBy ?? null], ['CANCELED', 'Month end.', null]);
    const { rows } = await one.database.query<{ changes: object }>(
      `SELECT changes FROM ${one.schema}._audit WHERE operation_id = 'metadata.tenants.cancelDeployment'`,
    );
    assert.deepEqual(rows, [{ changes: { deploymentId: first, status: 'QUEUED', reason: 'Month end.' } }]);
    await cancel(two.tenantId, second);
    assert.deepEqual(await listed(), []);
  });

  it('has metrics of queue length, wait, outcome, and lost workers', async () => {
    assert.equal((await one.deploy(fieldFile('User', 'Told__c', 'fieldType: text'))).status, 'SUCCEEDED');
    const waits = await insertQuietly(one, fieldFile('User', 'Waits__c', 'fieldType: text'));
    const read = async (): Promise<string> => (await fetch(metrics)).text();
    const until = async (line: RegExp): Promise<void> => {
      for (let i = 0; i < 60 && !line.test(await read()); i++) await new Promise((resolve) => setTimeout(resolve, 500));
      assert.match(await read(), line);
    };
    await until(/^erp_deployment_duration_seconds_count\{status="SUCCEEDED"\} 1$/m);
    await until(/^erp_deployment_phase_seconds_total\{phase="apply"\} \d+\.\d+$/m);
    await until(/^erp_deployments_open\{state="queued"\} 1$/m);
    await until(/^erp_deployments_oldest_seconds [1-9]/m);
    await until(/^erp_deployment_workers_lost_total 0$/m);
    await one.database.query(
      "UPDATE metadata.deployments SET status = 'APPLYING', takes = 1, lease_until = now() WHERE deployment_id = $1",
      [waits],
    );
    assert.equal((await one.finished(waits)).status, 'SUCCEEDED');
    await until(/^erp_deployment_workers_lost_total 1$/m);
  });
});
