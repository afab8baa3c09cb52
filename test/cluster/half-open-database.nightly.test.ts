/**
 * The database link of one of two data processes goes silent under steady keyed writes: connections stay open, and no
 * answer passes. The other process takes the calls over. No request is sent twice by its caller.
 * Source: docs/reference/reliability.md#a-database-that-does-not-answer.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { ServiceName } from '../../config/services.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { Link, type LinkState } from '../storm/link.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import { startSecureNats } from '../support/nats.ts';
import { createPlatformDatabase } from '../support/platform.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';
import { until } from './stage.ts';

const WRITES_PER_SECOND = 50;
/** A machine that is too busy for that pace gets less to do, not a queue. */
const IN_FLIGHT_MAX = 200;
const BROKEN_MS = 15_000;
/** Silence is confirmed after 3.5 s; the rest is for a machine with other work. */
const SILENCE_MAX_MS = 7_000;

interface Written {
  /** Of `performance.now()`. */
  readonly at: number;
  readonly done: number;
  readonly status: number;
  readonly text: string;
}

describe('a database link that is half open', function () {
  this.timeout(300_000);
  let nats: Awaited<ReturnType<typeof startSecureNats>>;
  let database: Awaited<ReturnType<typeof createPlatformDatabase>>;
  let link: Link;
  let otherLink: Link;
  const processes: ServiceProcess[] = [];
  let baseUrl: string;
  let health: { gateway: string; broken: string; healthy: string };
  let sam: Api;

  const run = async (service: ServiceName, databaseUrl: string, port: number): Promise<ServiceProcess> => {
    const env = { ...nats.environment(service), HEALTH_PORT: String(port) };
    const started = await startProcess({ services: [service], databaseUrl, natsUrl: nats.url, patience: 120_000, env });
    processes.push(started);
    return started;
  };
  const isReady = async (address: string): Promise<boolean> => (await fetch(`${address}/readyz`)).ok;
  /** Calls that the process has carried out. */
  const calls = async (address: string): Promise<number> => {
    const text = await (await fetch(`${address}/metrics`)).text();
    return text
      .split('\n')
      .filter((line) => line.startsWith('erp_database_seconds_total{'))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
  };

  before(async () => {
    [nats, database] = await Promise.all([startSecureNats(), createPlatformDatabase()]);
    const server = new URL(database.url);
    const open = (): Promise<Link> => Link.open(() => Number(server.port || 5432));
    [link, otherLink] = [await open(), await open()];
    const through = ({ port }: Link): string => {
      const address = new URL(server);
      address.hostname = '127.0.0.1';
      address.port = String(port);
      return address.toString();
    };
    const ports = [await freePort(), await freePort(), await freePort()] as const;
    const [gateway, broken, healthy] = ports.map((port) => `http://127.0.0.1:${port}`);
    health = { gateway: gateway!, broken: broken!, healthy: healthy! };
    const others: readonly ServiceName[] = ['auth', 'metadata', 'ratelimit'];
    const [entrance] = await Promise.all([
      run('gateway', database.url, ports[0]),
      ...others.map(async (service) => run(service, database.url, await freePort())),
    ]);
    await run('data', through(link), ports[1]);
    await run('data', through(otherLink), ports[2]);
    baseUrl = entrance!.baseUrl;
    await until(
      'the cluster is ready',
      async () => (await Promise.all(Object.values(health).map(isReady))).every(Boolean),
      60_000,
    );
    sam = api(baseUrl, await tokenFor(baseUrl, 'sam'));
  });
  after(async () => {
    for (const each of [link, otherLink]) each?.set('whole');
    await Promise.all(processes.map((process) => process.stop()));
    for (const each of [link, otherLink]) each?.close();
    await nats?.stop();
    await database?.drop();
  });

  async function namesOf(prefix: string): Promise<string[]> {
    const names: string[] = [];
    for (let skip = 0; ; skip += 200) {
      const conditions = [{ id: '1', field: 'name', operator: 'starts_with', value: `${prefix} ` }];
      const filters = JSON.stringify({ logic: 'and', conditions });
      const query = new URLSearchParams({ filters, fields: 'id,name', take: '200', skip: `${skip}` });
      const { body } = await sam.get(`/data/Account?${query}`);
      for (const { name } of body.records) names.push(name);
      if (body.records.length < 200) return names.sort();
    }
  }

  for (const state of ['halfOpen', 'drop'] satisfies LinkState[])
    it(`leaves writes to the other process while the link is ${state}, loses and doubles none, and heals`, async () => {
      const prefix = `${state} ${randomUUID().slice(0, 8)}`;
      const written: Written[] = [];
      const made: string[] = [];
      const open = new Set<Promise<void>>();
      let number = 0;
      const write = async (name: string): Promise<void> => {
        const at = performance.now();
        const { status, text } = await sam.post('/data/Account', { name }, { idempotencyKey: randomUUID() });
        written.push({ at, done: performance.now(), status, text });
        if (status === 201) made.push(name);
      };
      const timer = setInterval(() => {
        if (open.size >= IN_FLIGHT_MAX) return;
        const one = write(`${prefix} ${++number}`).finally(() => open.delete(one));
        open.add(one);
      }, 1_000 / WRITES_PER_SECOND);
      let brokeAt = 0;
      try {
        await pause(2_000);
        brokeAt = performance.now();
        link.set(state);
        await pause(BROKEN_MS);
        assert.equal(await isReady(health.broken), false);
        assert.equal(await isReady(health.healthy), true);
        link.set('whole');
        await until('the process is ready again', () => isReady(health.broken), 15_000);
        const before = await calls(health.broken);
        await until('it takes calls again', async () => (await calls(health.broken)) > before + 0.05, 30_000);
      } finally {
        link.set('whole');
        clearInterval(timer);
        await Promise.all(open);
      }
      const failed = written.filter(({ status }) => status !== 201).map(({ status, text }) => `${status} ${text}`);
      assert.deepEqual(failed, []);
      const slowest = Math.max(...written.map(({ at, done }) => done - at));
      assert.ok(slowest < SILENCE_MAX_MS, `the slowest answer took ${Math.round(slowest)} ms`);
      // Once it is known, the silent process is asked nothing.
      const later = written.filter(({ at }) => at > brokeAt + SILENCE_MAX_MS && at < brokeAt + BROKEN_MS);
      const slowestLater = Math.max(...later.map(({ at, done }) => done - at));
      assert.ok(
        later.length > 0 && slowestLater < 2_000,
        `${later.length} writes, the slowest took ${slowestLater} ms`,
      );
      assert.deepEqual(await namesOf(prefix), made.sort());
    });

  it('answers 503 at once while both links are silent, and recovers with the first working one', async () => {
    const writeOne = async (): Promise<{ status: number; hasRetryAfter: boolean; took: number }> => {
      const began = performance.now();
      const name = `Silent ${randomUUID()}`;
      const { status, headers } = await sam.post('/data/Account', { name }, { idempotencyKey: randomUUID() });
      return { status, hasRetryAfter: headers.has('retry-after'), took: performance.now() - began };
    };
    try {
      for (const each of [link, otherLink]) each.set('halfOpen');
      const first = await writeOne();
      assert.deepEqual([first.status, first.hasRetryAfter], [503, true]);
      assert.ok(first.took < 2 * SILENCE_MAX_MS, `the first answer took ${Math.round(first.took)} ms`);
      await pause(SILENCE_MAX_MS);
      for (let n = 0; n < 10; n++) {
        const { status, hasRetryAfter, took } = await writeOne();
        assert.deepEqual([status, hasRetryAfter], [503, true]);
        assert.ok(took < 2_000, `an answer took ${Math.round(took)} ms`);
      }
      otherLink.set('whole');
      await until('one process is ready', () => isReady(health.healthy), 15_000);
      await pause(3_000);
      const answers = [];
      for (let n = 0; n < 20; n++) answers.push((await writeOne()).status);
      assert.deepEqual([...new Set(answers)], [201]);
      assert.equal(await isReady(health.broken), false);
    } finally {
      for (const each of [link, otherLink]) each.set('whole');
    }
    await until(
      'both are ready',
      async () => (await isReady(health.broken)) && (await isReady(health.healthy)),
      15_000,
    );
  });
});
