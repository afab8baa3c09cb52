/** A tenant is suspended for gateways in other processes as well, by the event or, where that is lost, a moment later. */
import assert from 'node:assert/strict';
import { ALL_SERVICES } from '../../config/services.ts';
import { call } from '../../contracts/call.ts';
import { api, tokenFor } from '../support/client.ts';
import type { TestDatabase } from '../support/database.ts';
import { type NatsServer, startNats } from '../support/nats.ts';
import { createPlatformDatabase, startPlatform, type TestPlatform } from '../support/platform.ts';

describe('suspended tenant on a cluster', function () {
  this.timeout(60_000);
  let nats: NatsServer;
  let database: TestDatabase;
  let services: TestPlatform;
  const gateways: TestPlatform[] = [];
  before(async () => {
    [nats, database] = await Promise.all([startNats(), createPlatformDatabase()]);
    const at = { natsUrl: nats.url, database };
    services = await startPlatform({ ...at, services: ALL_SERVICES.filter((name) => name !== 'gateway') });
    for (const NODE_ID of ['gateway-one', 'gateway-two'])
      gateways.push(await startPlatform({ ...at, services: ['gateway'], env: { NODE_ID } }));
  });
  after(async () => {
    for (const gateway of gateways) await gateway.stop();
    await services?.stop();
    await database?.drop();
    await nats?.stop();
  });

  it('is refused at every gateway within five seconds, and served again when resumed', async () => {
    const sams = await Promise.all(gateways.map(async ({ baseUrl }) => api(baseUrl, await tokenFor(baseUrl, 'sam'))));
    const both = async (status: number): Promise<void> => {
      for (const end = performance.now() + 10_000; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
        const seen = await Promise.all(sams.map(async (sam) => (await sam.get('/identity')).status));
        if (seen.every((one) => one === status)) return;
        assert.ok(performance.now() < end, `${seen} instead of ${status}`);
      }
    };
    await both(200);
    await call(services.broker, 'metadata.tenants.suspend', { key: 'demo', reason: 'Not paid.' });
    await both(403);
    await call(services.broker, 'metadata.tenants.resume', { key: 'demo' });
    await both(200);
  });
});
