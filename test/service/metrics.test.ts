/** The metrics of each service match docs/reference/metrics.md and pass promtool. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { ALL_SERVICES, type ServiceName } from '../../config/services.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import { documentedMetrics, type Served, servedMetrics } from '../support/metrics.ts';
import { type NatsServer, startNats } from '../support/nats.ts';
import { createPlatformDatabase, startPlatform, type TestPlatform } from '../support/platform.ts';
import { findPromtool, promtool } from '../support/promtool.ts';

const EVERY = 'Every process';
/** Tried out by the tests of tracing. */
const TRACED = 'Where tracing is on';
const documented = documentedMetrics().filter(({ section }) => section !== TRACED);

describe('metrics', () => {
  const processes = new Map<ServiceName, { platform: TestPlatform; health: string }>();
  let nats: NatsServer;
  let database: TestPlatform['database'];
  let admin: Api;

  const textOf = async (service: ServiceName): Promise<string> =>
    (await fetch(`${processes.get(service)!.health}/metrics`)).text();

  before(async function () {
    this.timeout(120_000);
    [nats, database] = await Promise.all([startNats(), createPlatformDatabase()]);
    await Promise.all(
      ALL_SERVICES.map(async (service) => {
        const port = await freePort();
        const env = { HEALTH_PORT: String(port) };
        const platform = await startPlatform({ services: [service], natsUrl: nats.url, database, seed: false, env });
        processes.set(service, { platform, health: `http://127.0.0.1:${port}` });
      }),
    );
    // Some work for each of them, so that there are samples.
    await Promise.all(
      [...processes.values()].map(({ platform }) => platform.broker.waitForServices([...ALL_SERVICES], 20_000, 20)),
    );
    const { baseUrl } = processes.get('gateway')!.platform;
    admin = api(baseUrl, await tokenFor(baseUrl, 'ada'));
    for (const path of [
      '/identity',
      '/objects',
      '/data/Account?take=1',
      '/analytics/dashboards',
      '/agent/runs',
      '/me/limits',
    ])
      assert.equal((await admin.get(path)).status, 200, path);
    await Promise.all(ALL_SERVICES.map(textOf));
    await pause(1_100); // a scrape is remembered for a second
  });
  after(async () => {
    await Promise.all([...processes.values()].map(({ platform }) => platform.stop()));
    await nats?.stop();
    await database?.drop();
  });

  for (const service of ALL_SERVICES)
    it(`of ${service} alone are the common ones and its own, with types and labels`, async () => {
      const served = servedMetrics(await textOf(service));
      const expected = documented.filter(({ section }) => section === EVERY || section === service);
      assert.deepEqual([...served.keys()].sort(), expected.map(({ name }) => name).sort());
      for (const { name, type, labels } of expected) {
        const metric = served.get(name) as Served;
        assert.equal(metric.type, type, name);
        if (metric.hasSamples) assert.deepEqual([...metric.labels].sort(), [...labels].sort(), name);
      }
    });

  it('have a documented section for each service', () => {
    const sections = new Set(documented.map(({ section }) => section));
    sections.delete(EVERY);
    for (const section of sections) assert.ok(ALL_SERVICES.includes(section as ServiceName), section);
    assert.equal(new Set(documented.map(({ name }) => name)).size, documented.length, 'each name stands once');
  });

  it('of every service count its calls by outcome, with their duration', async () => {
    const counts = async (action: string, outcome: string): Promise<number> => {
      const [service] = action.split('.') as [ServiceName];
      const line = `erp_action_calls_total{service="${service}",action="${action}",outcome="${outcome}"} `;
      const text = await textOf(service);
      const found = text.split('\n').find((one) => one.startsWith(line));
      assert.ok(found, `${line} in ${text}`);
      return Number(found.slice(line.length));
    };
    const [ok, refused] = [await counts('data.records.list', 'ok'), await counts('data.records.list', 'refused')];
    await admin.get('/data/Account?take=1');
    await admin.get('/data/Nothing?take=1');
    await pause(1_100);
    assert.deepEqual(
      [await counts('data.records.list', 'ok'), await counts('data.records.list', 'refused')],
      [ok + 1, refused + 1],
    );
    assert.match(
      await textOf('data'),
      /^erp_action_duration_seconds_bucket\{service="data",action="data\.records\.list",le="30"\} [1-9]/m,
    );
  });

  it('of caches count hits and misses', async () => {
    const text = await textOf('data');
    for (const cache of ['snapshots', 'tenants', 'lists', 'gets'])
      assert.match(text, new RegExp(`^erp_cache_hits_total\\{service="data",cache="${cache}"\\} \\d+$`, 'm'));
    assert.match(text, /^erp_cache_entries\{service="data",cache="tenants"\} 1$/m);
    assert.match(text, /^erp_cache_bytes\{service="data",cache="tenants"\} [1-9]/m);
    assert.match(text, /^erp_cache_hits_total\{service="data",cache="tenants"\} [1-9]/m);
  });

  it('of jobs cover the queues of the service', async () => {
    const text = await textOf('data');
    assert.match(text, /^erp_job_runs_total\{queue="data\.sweep",outcome="failed"\} 0$/m);
    assert.match(text, /^erp_job_oldest_waiting_seconds\{queue="data\.sweep"\} \d/m);
  });

  it('are the same for two readers: a scrape resets nothing', async () => {
    const first = servedMetrics(await textOf('gateway'));
    for (const { name, type } of documented) assert.notEqual(type, 'summary', name);
    const numbers = (text: string): Map<string, number> =>
      new Map(
        [...text.matchAll(/^(\S*(?:_total|_count|_sum|_bucket)(?:\{.*\})?) (\S+)$/gm)].map(([, n, v]) => [n!, +v!]),
      );
    const before = numbers(await textOf('gateway'));
    await pause(1_100);
    const after = numbers(await textOf('gateway'));
    for (const [name, value] of before)
      assert.ok(after.get(name)! >= value, `${name} went from ${value} to ${after.get(name)}`);
    assert.ok(first.size > 0 && before.size > 50);
  });

  it('follow the rules of Prometheus for names, units and types', async function () {
    this.timeout(120_000);
    const path = findPromtool();
    if (!path) this.skip();
    // Each metric once: promtool takes a second for each file.
    const blocks = new Map<string, string>();
    for (const service of ALL_SERVICES)
      for (const block of (await textOf(service)).split(/^(?=# HELP )/m)) blocks.set(block.split(' ', 3)[2]!, block);
    assert.ok(blocks.size >= documented.length);
    const { code, output } = promtool(path, ['check', 'metrics'], { input: [...blocks.values()].join('') });
    assert.deepEqual({ code, output }, { code: 0, output: '' });
  });
});
