/** Analytics in a process of its own, on a real NATS with TLS and a user each: who asks data, and in whose name. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { ServiceName } from '../../config/services.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import { deployOverHttp } from '../support/metadata-tenant.ts';
import { type NatsServer, startSecureNats } from '../support/nats.ts';
import { createPlatformDatabase, startPlatform, type TestPlatform } from '../support/platform.ts';
import { insist, until } from './stage.ts';

const DASHBOARD = `type: Dashboard
apiName: Deployed
name: Deployed
visibility: public
widgets:
  - widgetKey: invoices
    title: Invoices
    type: metric
    layout:
      x: 0
      "y": 0
      w: 3
      h: 2
    query:
      objectApiName: Invoice__c
      measures:
        - key: count
          aggregation: count
`;

describe('analytics apart from data', function () {
  this.timeout(120_000);
  const OTHERS: readonly ServiceName[] = ['auth', 'gateway', 'metadata', 'ratelimit'];
  let nats: NatsServer;
  let database: Awaited<ReturnType<typeof createPlatformDatabase>>;
  const platforms: TestPlatform[] = [];
  let ada: Api;
  let sam: Api;

  before(async () => {
    const identity = OTHERS.join('+');
    nats = await startSecureNats([identity]);
    database = await createPlatformDatabase();
    const run = async (services: readonly ServiceName[]): Promise<TestPlatform> => {
      const env = nats.environment([...services].sort().join('+'));
      const platform = await startPlatform({ services, database, env });
      platforms.push(platform);
      return platform;
    };
    const [{ baseUrl }] = await Promise.all([run(OTHERS), run(['data']), run(['analytics'])]);
    // The processes find each other within a moment.
    await until('the cluster is ready', async () => (await fetch(`${baseUrl}/readyz`)).ok, 60_000);
    ada = api(baseUrl, await tokenFor(baseUrl, 'ada'));
    sam = api(baseUrl, await tokenFor(baseUrl, 'sam'));
    // The gateway has found them; they may still have to find each other.
    await insist(() => ada.get('/analytics/catalog/Account'));
    const accounts = { package: { version: 1, types: [{ name: 'CustomObject', members: ['Account'] }] } };
    await insist(() => ada.post('/metadata/retrieve', accounts));
  });
  after(async () => {
    for (const platform of platforms) await platform.stop();
    await database?.drop();
    await nats?.stop();
  });

  it('counts the records of the caller', async () => {
    const made = await ada.post('/analytics/dashboards', {
      name: 'Cluster',
      visibility: 'public',
      widgets: [
        {
          widgetKey: 'accounts',
          title: 'Accounts',
          type: 'metric',
          layout: { x: 0, y: 0, w: 3, h: 2 },
          query: { objectApiName: 'Account', dimensions: [], measures: [{ key: 'count', aggregation: 'count' }] },
        },
      ],
    });
    assert.equal(made.status, 201, made.text);
    const at = `/analytics/dashboards/${made.body.dashboardId}`;
    assert.equal((await ada.post(`${at}/publish`, { expectedRevision: 1 })).status, 201);
    for (const who of [ada, sam]) {
      const { body } = await who.get('/data/Account?take=1&includeTotal=true');
      const run = await who.post(`${at}/widgets/accounts/run`, undefined, { idempotencyKey: null });
      assert.equal(run.status, 200, run.text);
      assert.deepEqual(run.body.rows, [[body.total]]);
    }
    assert.equal((await sam.get('/analytics/catalog/Account')).status, 200);
  });

  it('has the dashboards of a deployment', async () => {
    await deployOverHttp(ada, { 'dashboards/Deployed.yaml': DASHBOARD });
    const { body } = await sam.get('/analytics/dashboards?search=Deployed');
    assert.equal(body.total, 1);
  });

  it('when stopped is 503, without affecting other services', async () => {
    const at = platforms.findIndex(({ config }) => config.services.includes('analytics'));
    await platforms.splice(at, 1)[0]!.stop();
    await pause(100);
    const list = await sam.get('/analytics/dashboards');
    assert.deepEqual([list.status, list.body.code], [503, 'SERVICE_UNAVAILABLE'], list.text);
    assert.equal((await sam.get('/data/Account?take=1')).status, 200);
  });
});
