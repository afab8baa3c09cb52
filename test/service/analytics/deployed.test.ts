/** Taking over what deployments have brought: several requests and several processes at once, and failures. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Database } from '../../../mixins/database/database.ts';
import { DeployedDashboards } from '../../../services/analytics/dashboards/deployed.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const body = (name: string): string => JSON.stringify({ name, visibility: 'shared', sharedWith: [] });

describe('importing deployed dashboards', () => {
  let platform: TestPlatform;
  let database: Database;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    database = new Database(platform.database.url, { size: 4, applicationName: 'deployed dashboards test' });
  });
  after(async () => {
    await database?.close();
    await platform?.stop();
  });

  const process = (failures: unknown[] = []): DeployedDashboards =>
    new DeployedDashboards(database, (error) => failures.push(error));
  /** metadata at a version: it lists one dashboard which is named after it. */
  const at = (version: number) => async () => ({
    version,
    dashboards: [{ apiName: 'Cash', updatedById: null, body: body(`Version ${version}`) }],
    next: null,
  });
  /** A list that answers on demand. */
  const held = (list: ReturnType<typeof at>) => {
    const gate = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    return {
      asked: asked.promise,
      release: gate.resolve,
      list: async () => {
        asked.resolve();
        await gate.promise;
        return list();
      },
    };
  };
  const names = async (tenantId: string): Promise<string[]> => {
    const { rows } = await database.query<{ name: string }>(
      `SELECT v.name FROM analytics.dashboards d
       JOIN analytics.dashboard_versions v USING (tenant_id, dashboard_id)
       WHERE d.tenant_id = $1 AND d.deleted_at IS NULL AND v.version = 'published'`,
      [tenantId],
    );
    return rows.map(({ name }) => name);
  };

  it('reaches the requested version when another process imports an earlier one', async () => {
    const tenantId = randomUUID();
    const [slow, fast] = [process(), process()];
    const late = held(at(5));
    const asked = slow.upTo(5, tenantId, late.list);
    await late.asked;
    await fast.upTo(4, tenantId, at(4));
    late.release();
    await asked;
    assert.deepEqual(await names(tenantId), ['Version 5']);
  });

  it('does not continue an earlier version already in progress', async () => {
    const tenantId = randomUUID();
    const dashboards = process();
    const early = held(at(4));
    const first = dashboards.upTo(4, tenantId, early.list);
    await early.asked;
    const second = dashboards.upTo(5, tenantId, at(5));
    early.release();
    await Promise.all([first, second]);
    assert.deepEqual(await names(tenantId), ['Version 5']);
  });

  it('is not retried by each request after a failure, and requests continue without it', async () => {
    const tenantId = randomUUID();
    const failures: unknown[] = [];
    const dashboards = process(failures);
    let calls = 0;
    const failing = () => {
      calls++;
      return Promise.reject(new Error('no metadata'));
    };
    for (let n = 0; n < 3; n++) await dashboards.upTo(4, tenantId, failing);
    assert.deepEqual([calls, failures.length], [1, 1]);
    // A version that metadata does not have yet is a failure as well, not a reason to ask for ever.
    const other = randomUUID();
    await dashboards.upTo(5, other, at(4));
    assert.equal(failures.length, 2);
    assert.deepEqual(await names(other), []);
  });
});
