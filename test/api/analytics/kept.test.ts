/** The storage of dashboards is bounded by their content, not by the number of requests. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { removeOldestDeletedSql } from '../../../services/analytics/sweep.sql.ts';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

describe('stored dashboards', () => {
  let platform: TestPlatform;
  let sam: Api;
  let mia: Api;
  let database: Client;
  let tenantId: string;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
    tenantId = (await sam.get('/identity')).body.tenant.id;
    database = new Client({ connectionString: platform.database.url, application_name: 'dashboard test' });
    await database.connect();
    await database.query(`SET search_path = "t_${tenantId.replaceAll('-', '')}"`);
  });
  after(async () => {
    await database?.end();
    await platform?.stop();
  });

  /** A text widget whose content cannot be compressed. */
  const widget = (at: number) => ({
    widgetKey: `w${at}`,
    type: 'text',
    title: 'Text',
    layout: { x: 0, y: at, w: 6, h: 1 },
    query: null,
    options: { text: randomBytes(3_000).toString('base64') },
  });
  const make = async (widgets: object[], more: object = {}) => {
    const reply = await sam.post('/analytics/dashboards', { name: `Board ${randomUUID()}`, widgets, ...more });
    assert.equal(reply.status, 201, reply.text);
    return reply;
  };
  const bytes = async (): Promise<number> => {
    const { rows } = await database.query(
      `SELECT pg_total_relation_size('analytics.dashboard_versions')
        + pg_total_relation_size('_idempotency') AS bytes`,
    );
    return Number(rows[0].bytes);
  };

  it('do not grow by a whole dashboard with a change of the name', async () => {
    const long = await make(Array.from({ length: 30 }, (_, at) => widget(at)));
    assert.ok(long.text.length > 100_000);
    const path = `/analytics/dashboards/${long.body.dashboardId}`;
    const before = await bytes();
    for (let revision = 1; revision <= 20; revision++) {
      const reply = await sam.patch(path, { expectedRevision: revision, name: `Name ${revision}` });
      assert.deepEqual([reply.status, reply.body.widgets.length], [200, 30], reply.text.slice(0, 500));
    }
    assert.ok((await bytes()) - before < long.text.length, `${(await bytes()) - before}`);
    assert.deepEqual((await sam.get(path)).body.widgets, long.body.widgets);
  });

  it('answer the repetition of a long change with the current dashboard', async () => {
    const long = await make(Array.from({ length: 30 }, (_, at) => widget(at)));
    const path = `/analytics/dashboards/${long.body.dashboardId}`;
    const options = { idempotencyKey: randomUUID() };
    const renamed = await sam.patch(path, { expectedRevision: 1, name: 'Renamed' }, options);
    const again = await sam.patch(path, { expectedRevision: 1, name: 'Renamed' }, options);
    assert.deepEqual([again.status, again.text], [200, renamed.text]);
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    assert.equal(again.headers.get('etag'), renamed.headers.get('etag'));
    assert.equal((await sam.patch(path, { expectedRevision: 2, name: 'Later' })).status, 200);
    const later = await sam.patch(path, { expectedRevision: 1, name: 'Renamed' }, options);
    assert.deepEqual([later.status, later.body.name, later.body.revision], [200, 'Later', 3]);
    assert.equal((await sam.delete(path, { headers: { 'x-expected-revision': '3' } })).status, 204);
    assert.equal((await sam.patch(path, { expectedRevision: 1, name: 'Renamed' }, options)).status, 404);
  });

  it('keep only the newest deleted dashboards, up to their limit', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) {
      const { dashboardId } = (await make([])).body;
      const path = `/analytics/dashboards/${dashboardId}`;
      assert.equal((await sam.delete(path, { headers: { 'x-expected-revision': '1' } })).status, 204);
      ids.push(dashboardId);
    }
    const { text, values } = removeOldestDeletedSql(tenantId, 2);
    await database.query(text, [...(values ?? [])]);
    const { rows } = await database.query(
      'SELECT dashboard_id AS id FROM analytics.dashboards WHERE tenant_id = $1 AND deleted_at IS NOT NULL ORDER BY 1',
      [tenantId],
    );
    assert.deepEqual(rows.map(({ id }) => id).sort(), ids.slice(2).sort());
  });

  it('answer viewers 404 for the draft, with the reason', async () => {
    const { body } = await make([], { visibility: 'public' });
    const path = `/analytics/dashboards/${body.dashboardId}`;
    assert.equal((await sam.post(`${path}/publish`, { expectedRevision: 1 })).status, 201);
    assert.equal((await mia.get(path)).status, 200);
    const refused = await mia.get(`${path}?version=draft`);
    assert.deepEqual([refused.status, refused.body.code], [404, 'DASHBOARD_VERSION_NOT_FOUND']);
    assert.match(refused.body.message, /draft .* for those who may change it/);
  });
});
