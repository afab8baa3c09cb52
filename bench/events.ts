/**
 * What it costs that many hear of what happens: `node bench/events.ts [--seconds 20] [--rates 20,100] [--out <file>]`. Every service
 * is a process of its own over NATS. Records are created in two tenants at a steady rate, then as fast as 32 callers can; first alone,
 * then with 50 webhooks, then with 1,000 readers of streams as well. Each webhook and stream follows one of 25 objects; then all of them
 * follow the same one. An event lags by the time from its commit to its arrival here.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer, type IncomingMessage, request } from 'node:http';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { readConfig } from '../config/env.ts';
import { ALL_SERVICES, type ServiceName } from '../config/services.ts';
import { call } from '../contracts/call.ts';
import { LIMITS } from '../lib/limits.ts';
import { start } from '../main.ts';
import { freePort, startEmbeddedDatabase } from '../mixins/database/embedded.ts';
import { signIn } from '../scripts/sign-in.ts';
import { api } from '../test/support/client.ts';
import { startNats } from '../test/support/nats.ts';
import { removeLogs, type ServiceProcess, startProcess } from '../test/support/processes.ts';
import { cpuSeconds } from './load.ts';

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    rates: { type: 'string', default: '20,100' },
    out: { type: 'string' },
  },
});
const SECONDS = Number(options.seconds);
const RATES = options.rates.split(',').map(Number);
const TENANTS = ['north', 'south'];
const WEBHOOKS = 50;
const STREAMS = 1_000;
const CALLERS = 32;
const PASSWORD = 'a long enough password';
/** Users of a tenant: as many as the streams of one user allow. */
const USERS = STREAMS / TENANTS.length / LIMITS.event_streams_of_caller_max;
const OBJECTS = Array.from({ length: 25 }, (_, n) => `Thing${n}__c`);
/** What is written, and followed: each of the objects, or the first one alone. */
let written: readonly string[] = OBJECTS;

interface Tenant {
  readonly tokens: readonly string[];
}

const WATCHED = ['gateway', 'data', 'events'] as const;
const folder = mkdtempSync(join(tmpdir(), 'bench-events-'));
const [nats, database, port] = await Promise.all([
  startNats(),
  startEmbeddedDatabase(join(folder, 'database'), { settings: ['shared_buffers=512MB'] }),
  freePort(),
]);
const baseUrl = `http://127.0.0.1:${port}`;
const processes = new Map<ServiceName, ServiceProcess>();
const lines: string[] = [];
/** Milliseconds by which events lag, since the last figures. */
let lags: { webhooks: number[]; streams: number[] } = { webhooks: [], streams: [] };
/** Each webhook has a receiver of its own. */
const receivers = Array.from({ length: WEBHOOKS }, () =>
  createServer((incoming, response) => {
    let text = '';
    incoming.on('data', (chunk: Buffer) => (text += chunk.toString()));
    incoming.on('end', () => {
      lags.webhooks.push(Date.now() - Date.parse(JSON.parse(text).time));
      response.writeHead(204).end();
    });
  }),
);
const hosts = await Promise.all(
  receivers.map(async (receiver) => {
    const ofReceiver = await freePort();
    await new Promise<void>((resolve) => receiver.listen(ofReceiver, '127.0.0.1', resolve));
    return `127.0.0.1:${ofReceiver}`;
  }),
);

/** Two tenants with the objects, and people who sign in. */
async function makeTenants(): Promise<void> {
  const env = { DATABASE_URL: database.url, PORT: '0', LOG_LEVEL: 'warn', SEED_DEMO: 'false', DATA_DIR: folder };
  const { broker, stop } = await start(readConfig(env));
  for (const key of TENANTS) {
    const { tenantId } = await call(broker, 'metadata.tenants.create', { template: 'empty', key, name: key });
    await call(broker, 'auth.domains.add', { tenantId, domain: `${key}.example` });
    const files = Object.fromEntries(
      OBJECTS.map((name) => [
        `objects/${name}/object.yaml`,
        `type: CustomObject\napiName: ${name}\nlabel: Thing\nlabelPlural: Things\nnameField:\n  label: Name\n  fieldType: text\nsharingDefault: readWrite\napi:\n  published: true\n`,
      ]),
    );
    await call(broker, 'metadata.templates.deploy', { tenantId, files }, { timeout: 60_000 });
    const users = Array.from({ length: USERS }, (_, i) => ({
      username: `user${i}@${key}.example`,
      email: `user${i}@${key}.example`,
      displayName: `User ${i}`,
      profileApiName: 'Administrator',
      password: PASSWORD,
    }));
    await call(broker, 'data.users.provision', { tenantId, users }, { timeout: 120_000 });
  }
  await stop();
}

async function startServices(): Promise<void> {
  const env = {
    DATA_DIR: folder,
    SEED_DEMO: 'false',
    WEBHOOK_PRIVATE_HOSTS: hosts.join(','),
    RATE_CONNECTION_UNITS: '100000000',
    RATE_TENANT_UNITS: '100000000',
    RATE_DAILY_UNITS: '10000000000',
  };
  for (const service of ALL_SERVICES)
    processes.set(
      service,
      await startProcess({
        services: [service],
        databaseUrl: database.url,
        natsUrl: nats.url,
        patience: 300_000,
        env: { ...env, ...(service === 'gateway' ? { PORT: String(port) } : {}) },
      }),
    );
}

async function signInAll(): Promise<Tenant[]> {
  const tenants: Tenant[] = [];
  for (const key of TENANTS) {
    const tokens: string[] = [];
    for (let i = 0; i < USERS; i++)
      tokens.push((await signIn({ baseUrl, user: `user${i}@${key}.example`, password: PASSWORD })).access_token);
    tenants.push({ tokens });
  }
  return tenants;
}

async function subscribe(tenants: readonly Tenant[]): Promise<() => Promise<void>> {
  const ends: (() => Promise<unknown>)[] = [];
  for (const [t, { tokens }] of tenants.entries())
    for (let i = 0; i < WEBHOOKS / TENANTS.length; i++) {
      // Each user has a few.
      const who = api(baseUrl, tokens[i % 5]);
      const url = `http://${hosts[t * (WEBHOOKS / TENANTS.length) + i]}/`;
      const objects = [written[i % written.length]];
      const reply = await who.post('/events/subscriptions', {
        name: `Hook ${i}`,
        url,
        eventTypes: ['data.record.created'],
        objects,
      });
      if (reply.status !== 201) throw new Error(reply.text);
      ends.push(() => who.delete(`/events/subscriptions/${reply.body.subscriptionId}`));
    }
  return async () => {
    for (const end of ends) await end();
  };
}

/** Opens the streams of everybody; answers what closes them. */
async function openStreams(tenants: readonly Tenant[]): Promise<() => void> {
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  const open: IncomingMessage[] = [];
  for (const { tokens } of tenants)
    for (let i = 0; i < STREAMS / TENANTS.length; i++)
      open.push(
        await openStream(agent, tokens[i % USERS] ?? '', `127.0.${1 + (i % 50)}.1`, written[i % written.length] ?? ''),
      );
  return () => {
    for (const stream of open) stream.destroy();
    agent.destroy();
  };
}

/** `localAddress`: of a network of its own, each of which may have so many connections. */
const openStream = (agent: Agent, token: string, localAddress: string, object: string): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' };
    request(`${baseUrl}/api/v1/events/stream?objects=${object}`, { agent, headers, localAddress }, (response) => {
      if (response.statusCode !== 200) return reject(new Error(`A stream was answered with ${response.statusCode}.`));
      response.on('error', () => {});
      response.on('data', (chunk: Buffer) => {
        // A time that is torn apart by the end of a piece is not missed among so many.
        for (const [, time = ''] of chunk.toString().matchAll(/"time":"([^"]+)"/g))
          lags.streams.push(Date.now() - Date.parse(time));
      });
      return resolve(response);
    })
      .on('error', reject)
      .end();
  });

let n = 0;
/** Creates a record; answers how long it took, in milliseconds. */
async function write(tenants: readonly Tenant[]): Promise<number> {
  const begun = performance.now();
  const object = written[(n >> 1) % written.length];
  const { status, text } = await api(baseUrl, tenants[n++ % tenants.length]?.tokens[0]).post(`/data/${object}`, {
    name: `Thing ${n}`,
  });
  if (status !== 201) throw new Error(text);
  return performance.now() - begun;
}

async function atRate(tenants: readonly Tenant[], rate: number): Promise<number[]> {
  const writes: Promise<number>[] = [];
  const begun = performance.now();
  for (let i = 0; i < rate * SECONDS; i++) {
    writes.push(write(tenants));
    await pause(Math.max(0, begun + ((i + 1) * 1_000) / rate - performance.now()));
  }
  return Promise.all(writes);
}

async function asFastAsPossible(tenants: readonly Tenant[]): Promise<number[]> {
  const times: number[] = [];
  const until = performance.now() + SECONDS * 1_000;
  const caller = async (): Promise<void> => {
    while (performance.now() < until) times.push(await write(tenants));
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return times;
}

const at = (values: readonly number[], share: number): string => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) * share)]?.toFixed(0) ?? '';
};

const pidsOf = (service: (typeof WATCHED)[number]): number => processes.get(service)?.pid ?? 0;

const residentMiB = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;

async function measure(who: string, tenants: readonly Tenant[]): Promise<void> {
  for (const rate of [...RATES, null]) {
    lags = { webhooks: [], streams: [] };
    const roots = [...WATCHED.map((service) => [pidsOf(service)]), [database.pid]];
    const before = roots.map(cpuSeconds);
    const begun = performance.now();
    const writes = rate === null ? await asFastAsPossible(tenants) : await atRate(tenants, rate);
    const seconds = (performance.now() - begun) / 1_000;
    const spent = roots.map((root, index) => (cpuSeconds(root) - (before[index] ?? 0)) / seconds);
    // What is under way arrives, and counts.
    await pause(5_000);
    const cells = [
      who,
      rate === null ? `${CALLERS} callers` : `${rate}/s`,
      (writes.length / seconds).toFixed(0),
      at(writes, 0.5),
      at(writes, 0.99),
      ...[lags.webhooks, lags.streams].flatMap((list) => [
        list.length ? (list.length / seconds).toFixed(0) : '',
        at(list, 0.5),
        at(list, 0.99),
      ]),
      spent.map((one) => one.toFixed(2)).join(' / '),
      WATCHED.map((service) => residentMiB(pidsOf(service)).toFixed(0)).join(' / '),
    ];
    lines.push(`| ${cells.join(' | ')} |`);
    console.info(lines.at(-1));
  }
}

try {
  await makeTenants();
  await startServices();
  const tenants = await signInAll();
  for (let i = 0; i < 500; i++) await write(tenants);
  await measure('nobody', tenants);
  for (const [what, objects] of [
    ['one of 25 objects', OBJECTS],
    ['the same object', OBJECTS.slice(0, 1)],
  ] as const) {
    written = objects;
    const unsubscribe = await subscribe(tenants);
    await measure(`${WEBHOOKS} webhooks, ${what}`, tenants);
    const close = await openStreams(tenants);
    await measure(`${WEBHOOKS} webhooks, ${STREAMS} streams, ${what}`, tenants);
    close();
    await unsubscribe();
  }
  const text = [
    `\`node bench/events.ts --seconds ${SECONDS} --rates ${RATES.join()}\`, ${new Date().toISOString().slice(0, 10)}, ${cpus().length} x ${cpus()[0]?.model.trim()}, Node ${process.version}.`,
    '',
    `Times in milliseconds. Processor: of ${WATCHED.join(', ')} and PostgreSQL, in cores. Memory: of ${WATCHED.join(', ')}, in MiB.`,
    '',
    '| who listens | writes asked for | writes/s | p50 | p99 | events/s to webhooks | lag p50 | lag p99 | events/s to streams | lag p50 | lag p99 | processor | memory |',
    '|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|',
    ...lines,
    '',
  ].join('\n');
  if (options.out) writeFileSync(options.out, text);
  else console.info(text);
} finally {
  for (const receiver of receivers) {
    receiver.close();
    receiver.closeAllConnections();
  }
  await Promise.all([...processes.values()].map((process) => process.stop()));
  await nats.stop();
  await database.stop();
  rmSync(folder, { recursive: true, force: true });
  removeLogs();
}
