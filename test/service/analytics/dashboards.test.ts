/** Dashboards in their tables: how many there may be, what is removed in the end, and what row-level security holds. */
import assert from 'node:assert/strict';
import { LIMITS } from '../../../lib/limits.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { Database } from '../../../mixins/database/database.ts';
import { removeDeleted } from '../../../services/analytics/sweep.ts';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

describe('stored dashboards', () => {
  let platform: TestPlatform;
  let database: Database;
  let sam: Api;
  let sue: Api;
  let samId: string;
  /** Ids of tenants by key. */
  const tenants: Record<string, string> = {};

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    database = new Database(platform.database.url, { size: 2, applicationName: 'dashboards test' });
    const { rows } = await database.query<{ id: string; key: string }>('SELECT id, key FROM metadata.tenants');
    for (const { id, key } of rows) tenants[key] = id;
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    sue = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sue'));
    samId = (await sam.get('/identity')).body.user.id;
  });
  after(async () => {
    await database?.close();
    await platform?.stop();
  });

  const insert = (count: number, ownerId: string, tenantId = tenants['demo']!): Promise<unknown> =>
    database.shared('analytics', tenantId, (tx) =>
      tx.query(
        `INSERT INTO analytics.dashboards (tenant_id, dashboard_id, owner_id, visibility)
         SELECT $1, gen_random_uuid(), $2, 'private' FROM generate_series(1, $3)`,
        [tenantId, ownerId, count],
      ),
    );
  const clear = (): Promise<unknown> => database.query('TRUNCATE analytics.dashboards CASCADE');

  it('are limited per user and tenant, also for concurrent requests', async () => {
    await clear();
    await insert(LIMITS.dashboards_per_user_max - 2, samId);
    const replies = await Promise.all(
      Array.from({ length: 5 }, () => sam.post('/analytics/dashboards', { name: 'x' })),
    );
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 201, 413, 413, 413]);
    const refused = replies.find(({ status }) => status === 413)!;
    assert.deepEqual(
      [refused.body.code, refused.body.details],
      ['TOO_MANY_ITEMS', { max: LIMITS.dashboards_per_user_max }],
    );
    assert.equal((await sue.post('/analytics/dashboards', { name: 'x' })).status, 201);
    await insert(LIMITS.dashboards_per_tenant_max, uuidv7());
    const full = await sue.post('/analytics/dashboards', { name: 'x' });
    assert.deepEqual(
      [full.body.code, full.body.details],
      ['TOO_MANY_ITEMS', { max: LIMITS.dashboards_per_tenant_max }],
    );
  });

  it('are purged with all their parts after their retention', async () => {
    await clear();
    const ids: string[] = [];
    for (const name of ['kept', 'deleted', 'gone']) {
      const made = await sam.post('/analytics/dashboards', {
        name,
        visibility: 'shared',
        sharedWith: [{ principalType: 'role', principalId: 'SalesManager', access: 'view' }],
      });
      ids.push(made.body.dashboardId);
      if (name !== 'kept') await sam.delete(`/analytics/dashboards/${made.body.dashboardId}?expectedRevision=1`);
    }
    const tenantId = tenants['demo']!;
    await database.shared('analytics', tenantId, (tx) =>
      tx.query(`UPDATE analytics.dashboards SET deleted_at = now() - interval '31 days' WHERE dashboard_id = $1`, [
        ids[2],
      ]),
    );
    assert.equal(await removeDeleted(database, tenants['acme']!), 0);
    assert.equal(await removeDeleted(database, tenantId), 1);
    assert.equal(await removeDeleted(database, tenantId), 0);
    for (const table of ['dashboards', 'dashboard_versions', 'dashboard_shares']) {
      const { rows } = await database.shared('analytics', tenantId, (tx) =>
        tx.query<{ id: string }>(`SELECT dashboard_id AS id FROM analytics.${table} ORDER BY dashboard_id`),
      );
      assert.deepEqual(
        rows.map(({ id }) => id),
        ids.slice(0, 2).sort(),
        table,
      );
    }
  });

  it('of another tenant cannot be seen or written, whatever a statement asks', async () => {
    await clear();
    await insert(1, samId);
    const acme = tenants['acme']!;
    for (const table of ['dashboards', 'dashboard_versions', 'dashboard_shares', 'deployed']) {
      const { rowCount } = await database.shared('analytics', acme, (tx) =>
        tx.query(`SELECT FROM analytics.${table} WHERE tenant_id = $1`, [tenants['demo']]),
      );
      assert.equal(rowCount, 0, table);
    }
    await assert.rejects(
      database.shared('analytics', acme, (tx) =>
        tx.query(
          `INSERT INTO analytics.dashboards (tenant_id, dashboard_id, visibility) VALUES ($1, gen_random_uuid(), 'public')`,
          [tenants['demo']],
        ),
      ),
      /row-level security/,
    );
  });
});
