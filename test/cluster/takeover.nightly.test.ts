/**
 * Processes that are lost under steady traffic: what they worked on is repeated on another one, and callers see a pause
 * at most. No request of these tests is sent twice by its caller.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { ServiceName } from '../../config/services.ts';
import { freePort } from '../../mixins/database/embedded.ts';
import { type Answer, type Api, api, tokenFor } from '../support/client.ts';
import { startSecureNats } from '../support/nats.ts';
import { createPlatformDatabase } from '../support/platform.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';
import { until } from './stage.ts';

const REQUESTS_PER_SECOND = 100;
/** A machine that is too busy for that pace gets less to do, not a queue. */
const IN_FLIGHT_MAX = 16;
const CRASHES = 3;
const CRASHES_MAX = 10;
/** Callers wait so long at most when a process is killed, unless the machine has other work. */
const PAUSE_MS = 300;

/** One request of the traffic. */
interface Sent {
  readonly what: string;
  readonly at: number;
  readonly took: number;
  readonly status: number;
  readonly text: string;
}

interface Traffic {
  readonly sent: Sent[];
  /** Names of the records that were made, by the id that the caller was given. */
  readonly made: Map<string, string>;
  stop(): Promise<void>;
}

describe('processes lost under traffic', function () {
  this.timeout(300_000);
  let nats: Awaited<ReturnType<typeof startSecureNats>>;
  let database: Awaited<ReturnType<typeof createPlatformDatabase>>;
  const processes = new Set<ServiceProcess>();
  const single = new Map<ServiceName, ServiceProcess>();
  let data: ServiceProcess[] = [];
  let health: string;
  let baseUrl: string;
  let sam: Api;
  let account: string;

  const run = async (service: ServiceName, env: Record<string, string> = {}): Promise<ServiceProcess> => {
    const process = await startProcess({
      services: [service],
      databaseUrl: database.url,
      natsUrl: nats.url,
      patience: 120_000,
      env: { ...nats.environment(service), ...env },
    });
    processes.add(process);
    return process;
  };
  const kill = async (process: ServiceProcess): Promise<void> => {
    processes.delete(process);
    await process.kill();
  };

  before(async () => {
    [nats, database] = await Promise.all([startSecureNats(), createPlatformDatabase()]);
    const port = await freePort();
    health = `http://127.0.0.1:${port}`;
    const names: readonly ServiceName[] = ['auth', 'metadata', 'ratelimit'];
    const [gateway, ...others] = await Promise.all([
      run('gateway', { HEALTH_PORT: String(port) }),
      ...names.map((name) => run(name)),
    ]);
    data = await Promise.all([run('data'), run('data')]);
    for (const process of [gateway, ...others]) single.set(process.services[0]!, process);
    baseUrl = gateway.baseUrl;
    await until('the cluster is ready', async () => (await seenNodes()) === 6, 60_000);
    sam = api(baseUrl, await tokenFor(baseUrl, 'sam'));
    const made = await sam.post('/data/Account', { name: 'Read by all' });
    assert.equal(made.status, 201, made.text);
    account = made.body.id;
  });
  after(async () => {
    await Promise.all([...processes].map((process) => process.stop()));
    await nats?.stop();
    await database?.drop();
  });

  const metrics = async (): Promise<string> => (await fetch(`${health}/metrics`)).text();
  const metric = async (name: string): Promise<number> => {
    const line = (await metrics()).split('\n').find((text) => text.startsWith(`${name} `));
    return line === undefined ? 0 : Number(line.slice(name.length + 1));
  };
  const seenNodes = (): Promise<number> => metric('erp_bus_nodes');

  /** Reads and keyed writes in turn, at a steady pace, whatever becomes of them. */
  function traffic(prefix: string): Traffic {
    const sent: Sent[] = [];
    const made = new Map<string, string>();
    const open = new Set<Promise<void>>();
    let number = 0;
    const send = async (what: string, request: Promise<Answer>): Promise<Answer | null> => {
      const at = performance.now();
      const answer = await request.catch((error: Error) => error);
      const [status, text] = answer instanceof Error ? [0, String(answer)] : [answer.status, answer.text];
      sent.push({ what, at, took: performance.now() - at, status, text });
      return answer instanceof Error ? null : answer;
    };
    const one = async (n: number): Promise<void> => {
      if (n % 2 === 0) return void (await send('read', sam.get(`/data/Account/${account}`)));
      const name = `${prefix} ${n}`;
      const answer = await send('write', sam.post('/data/Account', { name }, { idempotencyKey: randomUUID() }));
      if (answer?.status === 201) made.set(answer.body.id, name);
    };
    const timer = setInterval(() => {
      if (open.size >= IN_FLIGHT_MAX) return;
      const work = one(number++).finally(() => open.delete(work));
      open.add(work);
    }, 1_000 / REQUESTS_PER_SECOND);
    return {
      sent,
      made,
      async stop() {
        clearInterval(timer);
        await Promise.all(open);
      },
    };
  }

  /** Every write that was answered is one record, and there are no others. */
  async function eachWasMadeOnce(prefix: string, made: ReadonlyMap<string, string>): Promise<void> {
    const stored = new Map<string, string>();
    for (let skip = 0; ; skip += 200) {
      const filters = {
        logic: 'and',
        conditions: [{ id: '1', field: 'name', operator: 'starts_with', value: `${prefix} ` }],
      };
      const query = new URLSearchParams({
        filters: JSON.stringify(filters),
        fields: 'id,name',
        take: '200',
        skip: `${skip}`,
      });
      const { body } = await sam.get(`/data/Account?${query}`);
      for (const { id, name } of body.records) stored.set(id, name);
      if (body.records.length < 200) break;
    }
    assert.deepEqual([...stored].sort(), [...made].sort());
  }

  const failed = (sent: readonly Sent[]): string[] =>
    sent
      .filter(({ status }) => status !== 200 && status !== 201)
      .map(({ what, status, text }) => `${what}: ${status} ${text}`);
  const slowest = (sent: readonly Sent[]): number => Math.max(...sent.map(({ took }) => took));

  it('repeats calls of a killed process: no caller sees a failure, and every write happens once', async () => {
    const prefix = `Crash ${randomUUID().slice(0, 8)}`;
    const flow = traffic(prefix);
    const pauses: number[] = [];
    try {
      // On a busy machine a request takes long without a crash, too: more crashes meet a moment in which it does not.
      const isSlow = (): boolean => Math.min(...pauses) >= PAUSE_MS;
      for (let crash = 1; crash <= CRASHES || (crash <= CRASHES_MAX && isSlow()); crash++) {
        await pause(1_000);
        const victim = data.shift()!;
        const before = flow.sent.length;
        await kill(victim);
        await pause(2_500);
        pauses.push(slowest(flow.sent.slice(before)));
        data.push(await run('data'));
        await until('it is found', async () => (await seenNodes()) === 6, 30_000);
      }
    } finally {
      await flow.stop();
    }
    assert.deepEqual(failed(flow.sent), []);
    await eachWasMadeOnce(prefix, flow.made);
    assert.ok(Math.min(...pauses) < PAUSE_MS, `${pauses.map(Math.round).join(', ')} ms`);
    assert.ok((await metric('erp_bus_repeats_total{outcome="answered"}')) > 0);
    assert.ok((await metric('erp_bus_nodes_lost_total{detection="unsubscribed"}')) >= CRASHES);
  });

  it('repeats calls of a frozen process, which repeats nothing when it continues', async () => {
    const prefix = `Stopped ${randomUUID().slice(0, 8)}`;
    const flow = traffic(prefix);
    const [victim] = data;
    try {
      await pause(1_000);
      process.kill(victim!.pid, 'SIGSTOP');
      await pause(3_000);
      process.kill(victim!.pid, 'SIGCONT');
      await until('it is found again', async () => (await seenNodes()) === 6, 30_000);
      await pause(1_000);
    } finally {
      process.kill(victim!.pid, 'SIGCONT');
      await flow.stop();
    }
    // A transaction that is open in the stopped process is waited for, but not for ever.
    const waiting = /IDEMPOTENCY_IN_PROGRESS/;
    assert.deepEqual(
      failed(flow.sent).filter((text) => !waiting.test(text)),
      [],
    );
    if (!flow.sent.some(({ text }) => waiting.test(text))) await eachWasMadeOnce(prefix, flow.made);
    assert.ok((await metric('erp_bus_nodes_lost_total{detection="silent"}')) > 0);
  });

  it('continues without auth, metadata and ratelimit, applies revocations, and recovers by itself', async () => {
    const [mia, ada] = [api(baseUrl, await tokenFor(baseUrl, 'mia')), api(baseUrl, await tokenFor(baseUrl, 'ada'))];
    const sue = api(baseUrl, await tokenFor(baseUrl, 'sue'));
    for (const known of [mia, ada, sue]) assert.equal((await known.get('/data/Account?take=1')).status, 200);
    const { body: connections } = await mia.get('/me/connections');
    const [{ connectionId }] = connections.records;
    const { body: users } = await ada.get('/data/User?take=50&fields=id,username');
    const sueId = users.records.find(({ username }: { username: string }) => username.startsWith('sue')).id;
    const { headers } = await ada.get(`/data/User/${sueId}`);
    const away: readonly ServiceName[] = ['auth', 'metadata', 'ratelimit'];
    await Promise.all(away.map((service) => kill(single.get(service)!)));
    const prefix = `Alone ${randomUUID().slice(0, 8)}`;
    const flow = traffic(prefix);
    try {
      // Longer than any answer of auth is used.
      await pause(8_000);
      const revoked = await mia.delete(`/me/connections/${connectionId}`);
      assert.equal(revoked.status, 204, revoked.text);
      const changed = await ada.patch(`/data/User/${sueId}`, { active: false }, { etag: headers.get('etag')! });
      assert.equal(changed.status, 200, changed.text);
      const refused = await sue.get('/data/Account?take=1');
      // By the gateway once it has asked again, by data at once.
      assert.ok(['API_ACCESS_DISABLED', 'TOKEN_REVOKED'].includes(refused.body.code), refused.text);
      await until('a connection has ended', async () => (await mia.get('/data/Account?take=1')).status === 401, 7_000);
      const stranger = await fetch(`${baseUrl}/api/v1/data/Account`, {
        headers: { authorization: `Bearer ${unknownToken()}` },
      });
      assert.deepEqual([stranger.status, stranger.headers.has('retry-after')], [503, true]);
      const ready = await fetch(`${health}/readyz`);
      assert.equal(ready.status, 200, `the gateway can do most of its work: ${await ready.text()}`);
    } finally {
      await flow.stop();
      for (const service of away) single.set(service, await run(service));
    }
    assert.deepEqual(failed(flow.sent), []);
    await eachWasMadeOnce(prefix, flow.made);
    await until('auth is back', async () => (await sam.get('/identity')).status === 200, 30_000);
    await until('limits are counted', async () => (await sam.get('/me/limits')).status === 200, 30_000);
    assert.equal((await mia.get('/data/Account?take=1')).status, 401);
  });
});

/** An access token signed with an unknown key. */
function unknownToken(): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'EdDSA', typ: 'at+jwt', kid: 'unseen' })}.${part({ sub: 'nobody' })}.${'A'.repeat(86)}`;
}
