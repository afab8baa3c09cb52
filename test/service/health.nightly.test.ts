/** Probes and numbers of a process without the gateway. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { databaseVariable, readConfig } from '../../config/env.ts';
import { ALL_SERVICES } from '../../config/services.ts';
import { migrateServices, start } from '../../main.ts';
import { Database } from '../../mixins/database/database.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { derivedUrl } from '../../mixins/database/logins.ts';
import { givePasswords } from '../../mixins/database/open.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { type NatsServer, startNats } from '../support/nats.ts';
import { testEnvironment } from '../support/platform.ts';
import { until } from '../support/until.ts';

describe('health of a process without the gateway', () => {
  let database: TestDatabase;
  let nats: NatsServer;
  let running: Awaited<ReturnType<typeof start>>;
  let address: string;

  before(async () => {
    const port = await freePort();
    [database, nats] = await Promise.all([createDatabase(), startNats()]);
    address = `http://127.0.0.1:${port}`;
    running = await start(
      readConfig(
        testEnvironment(database.url, { SERVICES: 'ratelimit', NATS_URL: nats.url, HEALTH_PORT: String(port) }),
      ),
    );
  });
  after(async () => {
    await running?.stop();
    await nats?.stop();
    await database?.drop();
  });

  it('/healthz reports liveness', async () => {
    const response = await fetch(`${address}/healthz`);
    assert.equal(response.status, 200);
    assert.deepEqual(await response.json(), { status: 'alive' });
  });

  it('/metrics serves Prometheus metrics', async () => {
    const response = await fetch(`${address}/metrics`);
    assert.match(response.headers.get('content-type')!, /^text\/plain; version=0\.0\.4/);
    const text = await response.text();
    for (const name of ['process_cpu_seconds_total', 'erp_bus_connected'])
      assert.match(text, new RegExp(`^# TYPE ${name} (gauge|counter)\\n${name} [\\d.e+-]+$`, 'm'));
    assert.match(text, /^erp_database_connections\{service="ratelimit",state="idle"\} [1-9]/m);
    assert.match(text, /^erp_build_info\{version="\d+\.\d+\.\d+",node="\d+\.\d+\.\d+",postgres="\d+[\d.]*"\} 1$/m);
    for (const direction of ['sent', 'received'])
      assert.match(text, new RegExp(`^erp_bus_bytes_total\\{direction="${direction}"\\} [1-9]`, 'm'));
  });

  it('answers nothing else', async () => {
    assert.equal((await fetch(`${address}/api/v1/identity`)).status, 404);
    assert.equal((await fetch(`${address}/healthz`, { method: 'POST' })).status, 405);
    assert.equal((await fetch(`${address}/healthz`, { method: 'HEAD' })).status, 200);
  });

  it('closes idle connections, partial requests and unread responses', async function () {
    this.timeout(30_000);
    const ended = async (text: string): Promise<string> => {
      const socket = connect(Number(new URL(address).port), '127.0.0.1');
      let received = '';
      socket.on('error', () => {}).on('data', (chunk) => (received += chunk));
      if (text !== '') socket.write(text);
      const started = performance.now();
      await new Promise((resolve) => socket.once('close', resolve));
      assert.ok(performance.now() - started < 10_000);
      return received;
    };
    const one = 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n';
    const [, , ahead] = await Promise.all([ended(''), ended(one.slice(0, -4)), ended(one.repeat(1_000))]);
    assert.equal(ahead, '', 'none of a thousand is answered');
  });

  it('reports a gateway as ready while only analytics and agent are unavailable', async () => {
    const port = await freePort();
    const SERVICES = 'gateway,auth,data,metadata';
    const own = { SERVICES, NATS_URL: nats.url, HEALTH_PORT: String(port), PORT: '0' };
    const gateway = await start(readConfig(testEnvironment(database.url, own)));
    try {
      assert.equal((await fetch(`http://127.0.0.1:${port}/readyz`)).status, 200);
    } finally {
      await gateway.stop();
    }
  });

  it('answers before the bus is connected: alive, not ready', async () => {
    const late = await startNats();
    await late.stop();
    const port = await freePort();
    const env = { SERVICES: 'ratelimit', NATS_URL: late.url, HEALTH_PORT: String(port) };
    const starting = start(readConfig(testEnvironment(database.url, env)));
    const ask = (path: string): Promise<Response | null> => fetch(`http://127.0.0.1:${port}${path}`).catch(() => null);
    for (let i = 0; !(await ask('/healthz')) && i < 100; i++) await new Promise((r) => setTimeout(r, 100));
    assert.equal((await ask('/healthz'))?.status, 200);
    // Until its database is there, and it looks for the bus, a process has less to say.
    let checks: object = {};
    for (let i = 0; !('bus' in checks) && i < 100; i++) {
      const ready = await ask('/readyz');
      if (ready) assert.equal(ready.status, 503);
      if (ready) checks = ((await ready.json()) as { checks: object }).checks;
      await new Promise((r) => setTimeout(r, 50));
    }
    assert.deepEqual(checks, { database: true, bus: false, clock: true, started: false });
    await late.start();
    await (await starting).stop();
    await late.stop();
  });

  it('/readyz names unavailable dependencies', async () => {
    const ready = async (): Promise<{ status: number; body: unknown }> => {
      const response = await fetch(`${address}/readyz`);
      const body = (await response.json()) as { services: Record<string, { awaySeconds?: number }> };
      for (const service of Object.values(body.services)) delete service.awaySeconds;
      return { status: response.status, body };
    };
    const [away, unknown] = ['away', 'unknown'].map((status) => ({
      auth: { status, processes: 0 },
      files: { status, processes: 0 },
    }));
    assert.deepEqual(await ready(), {
      status: 200,
      body: { status: 'ready', checks: { database: true, bus: true, clock: true }, services: away },
    });
    await nats.stop();
    await until(async () => (await ready()).status !== 200);
    assert.deepEqual(await ready(), {
      status: 503,
      body: { status: 'unready', checks: { database: true, bus: false, clock: true }, services: unknown },
    });
    await nats.start();
    await until(async () => (await ready()).status === 200);
  });
});

describe('health of a process with the gateway', () => {
  let database: TestDatabase;
  let port: number;
  let running: Awaited<ReturnType<typeof start>>;
  beforeEach(async () => {
    [database, port] = await Promise.all([createDatabase(), freePort()]);
  });
  afterEach(async () => {
    await running?.stop();
    await database?.drop();
  });
  const begin = async (more: Record<string, string>): Promise<void> => {
    const env: Record<string, string> = {
      HEALTH_PORT: String(port),
      SEED_DEMO: 'false',
      RATE_ANONYMOUS_REQUESTS: '5',
      ...more,
    };
    if (env['NODE_ENV'] === 'production') {
      // The same passwords as in development, because other tests sign in to this server as well.
      const logins = ALL_SERVICES.map((service) => [databaseVariable(service), derivedUrl(database.url, service)!]);
      const config = readConfig(testEnvironment('', { ...env, ...Object.fromEntries(logins) }));
      const owner = new Database(database.url, { size: 2, applicationName: 'migrate test' });
      await migrateServices(owner, ALL_SERVICES);
      await givePasswords(owner, config, ALL_SERVICES, assert.fail);
      await owner.close();
      running = await start(config);
    } else running = await start(readConfig(testEnvironment(database.url, env)));
  };
  const statuses = (base: string): Promise<number[]> =>
    Promise.all(['/healthz', '/readyz', '/metrics'].map(async (path) => (await fetch(base + path)).status));

  it('has probes and metrics on the health port; in production the public port has no metrics', async () => {
    const PLATFORM_SECRET = randomBytes(48).toString('base64');
    await begin({ NODE_ENV: 'production', PLATFORM_SECRET, BASE_URL_ALLOW_INSECURE: 'true' });
    const health = `http://127.0.0.1:${port}`;
    assert.deepEqual(await statuses(health), [200, 200, 200]);
    assert.deepEqual(await statuses(running.baseUrl!), [200, 200, 404]);
    assert.match(await (await fetch(`${health}/readyz`)).text(), /"metadata":true/, 'the gateway knows what it needs');
    const metrics = async () => (await fetch(`${health}/metrics`)).text();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    assert.match(await metrics(), /erp_http_requests_total\{operation="healthz",status="200"\} 1\n/);
    for (;;) {
      const start = performance.now();
      const first = await metrics();
      await fetch(`${running.baseUrl}/healthz`);
      const again = await metrics();
      if (performance.now() - start >= 1_000) continue; // too slow for two within a second
      assert.equal(again, first, 'made once a second');
      break;
    }
    for (let i = 0; i < 20; i++) assert.deepEqual(await statuses(health), [200, 200, 200], 'probes cost nothing there');
  });

  it('has metrics on both in development, and charges callers for them', async () => {
    await begin({});
    assert.deepEqual(await statuses(`http://127.0.0.1:${port}`), [200, 200, 200]);
    for (let i = 0; i < 5; i++) assert.equal((await fetch(`${running.baseUrl}/metrics`)).status, 200);
    assert.equal((await fetch(`${running.baseUrl}/metrics`)).status, 429);
  });
});
