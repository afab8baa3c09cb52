/** `npm run bench`: the platform beside the limit, workload by workload. See README.md in this folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ALL_SERVICES, type ServiceName } from '../config/services.ts';
import { tenantSchema } from '../lib/context.ts';
import { Database } from '../mixins/database/database.ts';
import { freePort, startEmbeddedDatabase } from '../mixins/database/embedded.ts';
import { INVOICES, loadPlain, loadTenant, rowId } from './dataset.ts';
import { cpuSeconds, ensureWrk, type LoadResult, runLoad } from './load.ts';
import { type createBenchTenant, root, tokenFor } from './tenant.ts';
import { limitTarget, platformTarget, type Target, WORKLOADS } from './workloads.ts';

const work = join(root, 'bench', '.work');
const { values: options } = parseArgs({
  options: {
    mode: { type: 'string', default: 'both' },
    workloads: { type: 'string', default: Object.keys(WORKLOADS).join(',') },
    seconds: { type: 'string', default: '10' },
    warmup: { type: 'string', default: '2' },
    connections: { type: 'string', default: '1,32' },
    repeat: { type: 'string', default: '1' },
    out: { type: 'string' },
    beside: { type: 'string' },
  },
});

/** A version of the platform, its database, and how the report calls it. */
interface Version {
  readonly root: string;
  readonly databaseUrl: string;
  readonly database: Database;
  readonly suffix: string;
}
const children: ChildProcess[] = [];

/** Starts a process of ours and waits for its ready line. */
async function launch(folder: string, file: string, env: Record<string, string>): Promise<number> {
  const child = spawn(process.execPath, [join(folder, file)], {
    cwd: folder,
    env: { ...process.env, LOG_LEVEL: 'warn', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code} before it was ready`)));
    child.stdout!.on('data', (chunk: Buffer) => {
      if (chunk.includes('ready ')) resolve();
      else process.stderr.write(chunk);
    });
  });
  return child.pid!;
}

async function stopChildren(): Promise<void> {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGTERM');
    await new Promise((resolve) => child.once('exit', resolve));
  }
}

/** Tenant, objects, user and rows; once per data folder and version. */
async function prepare({ root: folder, databaseUrl, database, suffix }: Version): Promise<void> {
  const done = join(work, `prepared${suffix.replaceAll(' ', '-')}`);
  if (existsSync(done)) return;
  console.error(`preparing 10,000 accounts and 200,000 invoices${suffix}, once`);
  // Each version makes its tenant with its own code.
  const module = (await import(join(folder, 'bench', 'tenant.ts'))) as { createBenchTenant: typeof createBenchTenant };
  const { tenantId, userId } = await module.createBenchTenant(databaseUrl);
  await loadPlain(database);
  await loadTenant(database, `"${tenantSchema(tenantId)}"`, userId);
  writeFileSync(done, tenantId);
}

async function startPlatform({ root: folder, databaseUrl, suffix }: Version, mode: 'one' | 'nats'): Promise<Target> {
  const port = await freePort();
  const baseUrl = `http://127.0.0.1:${port}`;
  const common = {
    DATABASE_URL: databaseUrl,
    PORT: String(port),
    BASE_URL: baseUrl,
    SEED_DEMO: 'false',
    RATE_CONNECTION_UNITS: '100000000',
    RATE_TENANT_UNITS: '100000000',
    RATE_DAILY_UNITS: '10000000000',
    CONCURRENCY: '10000',
    CONCURRENCY_COSTLY: '10000',
    DATA_DIR: join(work, `data${suffix.replaceAll(' ', '-')}`),
  };
  if (mode === 'one') {
    const pid = await launch(folder, 'main.ts', common);
    return platformTarget(`one process${suffix}`, baseUrl, [pid], await tokenFor(baseUrl));
  }
  const natsPort = await freePort();
  const nats = spawn('nats-server', ['-a', '127.0.0.1', '-p', String(natsPort)], { stdio: 'ignore' });
  children.push(nats);
  const apart = { ...common, NATS_URL: `nats://127.0.0.1:${natsPort}` };
  const pids = [nats.pid!];
  // Those on the path of a measured request have a process of their own; the gateway comes last and sees the others.
  const alone: readonly ServiceName[] = ['metadata', 'data', 'gateway'];
  const others = ALL_SERVICES.filter((service) => !alone.includes(service)).join(',');
  for (const services of [others, ...alone])
    pids.push(await launch(folder, 'main.ts', { ...apart, SERVICES: services }));
  return platformTarget(`over NATS${suffix}`, baseUrl, pids, await tokenFor(baseUrl));
}

async function verify(target: Target, workload: string): Promise<void> {
  const request = target.requests[workload]![0]!;
  const sub = (text: string): string => text.replaceAll('__N__', String(Date.now()));
  const response = await fetch(target.baseUrl + sub(request.path), {
    method: request.method ?? 'GET',
    headers: Object.fromEntries(Object.entries(request.headers ?? {}).map(([k, v]) => [k, sub(v)])),
    ...(request.body === undefined ? {} : { body: sub(request.body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${target.name} ${workload}: HTTP ${response.status} ${text.slice(0, 300)}`);
  target.check(workload, JSON.parse(text) as never);
}

interface Point extends LoadResult {
  target: string;
  workload: string;
  connections: number;
  serverMs: number;
  databaseMs: number;
}

function report(points: readonly Point[]): string {
  const lines = [
    `${new Date().toISOString().slice(0, 10)}, ${cpus().length} x ${cpus()[0]!.model.trim()}, Node ${process.version}; ${options.seconds} s per point.`,
    '',
  ];
  const median = (list: number[]): number => list.sort((a, b) => a - b)[list.length >> 1]!;
  for (const c of options.connections.split(',').map(Number)) {
    lines.push(
      `### ${c} connection${c === 1 ? '' : 's'}`,
      '',
      '| workload | target | requests/s | p50 ms | p99 ms | server CPU ms/request | database CPU ms/request | KB/answer | errors | ratio to the limit |',
      '|---|---|--:|--:|--:|--:|--:|--:|--:|--:|',
    );
    for (const workload of options.workloads.split(',')) {
      const of = (target: string): Point[] =>
        points.filter((p) => p.workload === workload && p.connections === c && p.target === target);
      for (const target of new Set(points.map((p) => p.target))) {
        const mine = of(target);
        if (!mine.length) continue;
        const m = (pick: (p: Point) => number): number => median(mine.map(pick));
        const limit = median(of('limit').map((p) => p.rps));
        lines.push(
          `| ${workload} | ${target} | ${m((p) => p.rps).toFixed(0)} | ${m((p) => p.p50).toFixed(2)} | ${m((p) => p.p99).toFixed(2)} | ${m((p) => p.serverMs).toFixed(3)} | ${m((p) => p.databaseMs).toFixed(3)} | ${(m((p) => p.bytesPerRequest) / 1024).toFixed(1)} | ${mine.reduce((sum, p) => sum + p.errors, 0)} | ${(m((p) => p.rps) / limit).toFixed(2)} |`,
        );
      }
    }
    lines.push('');
  }
  lines.push(...Object.entries(WORKLOADS).map(([name, text]) => `- ${name}: ${text}`), '');
  return lines.join('\n');
}

mkdirSync(work, { recursive: true });
ensureWrk();
const embedded = await startEmbeddedDatabase(work);
const postgres = Number(readFileSync(join(work, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0]);
const open = (url: string): Database => new Database(url, { size: 2, applicationName: 'bench' });
const versions: Version[] = [{ root, databaseUrl: embedded.url, database: open(embedded.url), suffix: '' }];
const database = versions[0]!.database;

/** Another checkout, on a database of its own in the same server. */
async function addVersion(folder: string): Promise<void> {
  const url = new URL(embedded.url);
  url.pathname = '/beside';
  const { rowCount } = await database.query("SELECT FROM pg_database WHERE datname = 'beside'");
  if (rowCount === 0) await database.query('CREATE DATABASE beside');
  versions.push({ root: resolve(folder), databaseUrl: url.href, database: open(url.href), suffix: ' beside' });
}

/** Rows written by an earlier run are removed, so that every run meets the same tables. */
async function reset(): Promise<void> {
  await database.query('DELETE FROM bench.invoice WHERE id > 200000');
  await database.query('VACUUM ANALYZE bench.invoice');
  for (const version of versions) {
    const { rows } = await version.database.query<{ schema: string }>(
      `SELECT table_schema AS schema FROM information_schema.tables WHERE table_name = 'BenchInvoice__c'`,
    );
    const schema = `"${rows[0]!.schema}"`;
    const invoices = `${schema}."BenchInvoice__c"`;
    // Row 200,000 is dated October 2025; what a run created carries the time of the run.
    await version.database.query(`DELETE FROM ${invoices} WHERE id > $1`, [rowId(INVOICES)]);
    await version.database.query(`UPDATE ${invoices} SET "recordVersion" = 1 WHERE "recordVersion" > 1`);
    await version.database.query(
      `TRUNCATE ${schema}._history, ${schema}._audit, ${schema}._outbox, ${schema}._idempotency`,
    );
    await version.database.query(`VACUUM ANALYZE ${invoices}`);
  }
}

try {
  if (options.beside) await addVersion(options.beside);
  for (const version of versions) await prepare(version);
  await reset();
  const limitPort = await freePort();
  const targets = [
    limitTarget(
      `http://127.0.0.1:${limitPort}`,
      await launch(root, 'bench/limit-server.ts', { DATABASE_URL: embedded.url, PORT: String(limitPort) }),
    ),
  ];
  for (const mode of ['one', 'nats'] as const)
    if (options.mode === mode || options.mode === 'both')
      for (const version of versions) targets.push(await startPlatform(version, mode));
  const workloads = options.workloads.split(',');
  for (const target of targets) for (const workload of workloads) await verify(target, workload);
  const points: Point[] = [];
  for (let round = 0; round < Number(options.repeat); round++)
    for (const workload of workloads)
      for (const target of targets) {
        const requests = target.requests[workload]!;
        await runLoad(target.baseUrl, requests, 32, Number(options.warmup));
        for (const connections of options.connections.split(',').map(Number)) {
          if (workload === 'W6' || workload === 'W5') await reset();
          const before = [cpuSeconds(target.pids), cpuSeconds([postgres])] as const;
          const result = await runLoad(target.baseUrl, requests, connections, Number(options.seconds));
          const serverMs = ((cpuSeconds(target.pids) - before[0]) * 1000) / result.requests;
          const databaseMs = ((cpuSeconds([postgres]) - before[1]) * 1000) / result.requests;
          points.push({ target: target.name, workload, connections, serverMs, databaseMs, ...result });
          console.error(
            `${workload} c=${connections} ${target.name.padEnd(11)} ${result.rps.toFixed(0).padStart(6)} rps  p50 ${result.p50.toFixed(2)} ms  p99 ${result.p99.toFixed(2)} ms  ${serverMs.toFixed(3)} + ${databaseMs.toFixed(3)} ms CPU  ${result.errors} errors`,
          );
        }
      }
  const text = report(points);
  console.log(text);
  if (options.out) writeFileSync(options.out, text);
} finally {
  await stopChildren();
  for (const version of versions) await version.database.close();
  await embedded.stop();
}
