/** A machine whose clock is wrong: its processes answer that they are unavailable, say so, and recover by themselves. */
import assert from 'node:assert/strict';
import { freePort } from '../../mixins/database/embedded.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import type { TestDatabase } from '../support/database.ts';
import { startSecureNats } from '../support/nats.ts';
import { createPlatformDatabase, startPlatform, type TestPlatform } from '../support/platform.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';
import { until } from './stage.ts';

const OTHERS = 'agent+analytics+auth+data+metadata+ratelimit';
/** A minute ahead, until SIGUSR2 puts the clock right. */
const AHEAD =
  'const now = Date.now; let ahead = 60_000; Date.now = () => now() + ahead; process.on("SIGUSR2", () => (ahead = 0));';

describe('a gateway whose clock is a minute ahead', function () {
  this.timeout(120_000);
  let nats: Awaited<ReturnType<typeof startSecureNats>>;
  let database: TestDatabase;
  let others: TestPlatform;
  let gateway: ServiceProcess;
  let health: string;
  let othersHealth: string;
  let sam: Api;

  before(async () => {
    [nats, database] = await Promise.all([startSecureNats([OTHERS]), createPlatformDatabase()]);
    const [port, othersPort] = [await freePort(), await freePort()];
    [health, othersHealth] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${othersPort}`];
    others = await startPlatform({
      services: OTHERS.split('+') as never,
      database,
      seed: false,
      env: { ...nats.environment(OTHERS), HEALTH_PORT: String(othersPort) },
    });
    gateway = await startProcess({
      services: ['gateway'],
      databaseUrl: database.url,
      natsUrl: nats.url,
      env: {
        ...nats.environment('gateway'),
        HEALTH_PORT: String(port),
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(AHEAD)}`,
      },
    });
    sam = api(gateway.baseUrl, await tokenFor(gateway.baseUrl, 'sam'));
  });
  after(async () => {
    await gateway?.stop();
    await others?.stop();
    await nats?.stop();
    await database?.drop();
  });

  const readiness = async (): Promise<{ status: number; clock: boolean }> => {
    const answer = await fetch(`${health}/readyz`);
    const { checks } = (await answer.json()) as { checks: { clock: boolean } };
    return { status: answer.status, clock: checks.clock };
  };
  const metrics = async (): Promise<string> => (await fetch(`${health}/metrics`)).text();

  it('answers calls for users with 503, is not ready, and shows the difference', async () => {
    const answer = await sam.get('/data/Account');
    assert.equal(answer.status, 503, answer.text);
    assert.equal(answer.body.code, 'SERVICE_UNAVAILABLE');
    assert.ok(answer.headers.get('retry-after'));
    await until('not ready', async () => (await readiness()).status === 503, 5_000);
    assert.deepEqual(await readiness(), { status: 503, clock: false });
    assert.match(await metrics(), /^erp_clock_offset_seconds (59|60)(\.\d+)?$/m);
    assert.match(gateway.output(), /The clocks of this process and of [a-z+]+ differ/);
  });

  it('leaves the others ready, whose clock is that of the database', async () => {
    assert.equal((await fetch(`${othersHealth}/readyz`)).status, 200);
  });

  it('works again as soon as the clock is right', async () => {
    process.kill(gateway.pid, 'SIGUSR2');
    await until('ready', async () => (await readiness()).status === 200, 10_000);
    assert.equal((await sam.get('/data/Account')).status, 200);
    await until('no difference', async () => /^erp_clock_offset_seconds -?0/m.test(await metrics()), 5_000);
  });
});
