/** `npm run bench`: the platform beside the limit, workload by workload. See README.md in this folder. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Database } from '../mixins/database/database.ts';
import { startEmbeddedDatabase } from '../mixins/database/embedded.ts';
import { cpuSeconds, ensureWrk, type LoadRequest, type LoadResult, runLoad } from './load.ts';
import { prepare, reset, startLimit, startPlatform, stopChildren, type Version, work } from './platform.ts';
import { root } from './tenant.ts';
import { type Target, verify, WORKLOADS } from './workloads.ts';

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

/** The requests of a workload, of which there is at least one. */
function requestsOf({ name, requests }: Target, workload: string): [LoadRequest, ...LoadRequest[]] {
  const [first, ...others] = requests[workload] ?? [];
  if (!first) throw new Error(`${name} has no requests for ${workload}.`);
  return [first, ...others];
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
    `${new Date().toISOString().slice(0, 10)}, ${cpus().length} x ${cpus()[0]?.model.trim()}, Node ${process.version}; ${options.seconds} s per point.`,
    '',
  ];
  const median = (list: number[]): number => list.sort((a, b) => a - b)[list.length >> 1] ?? Number.NaN;
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
const database = open(embedded.url);
const versions: Version[] = [{ root, databaseUrl: embedded.url, database, suffix: '' }];

/** Another checkout, on a database of its own in the same server. */
async function addVersion(folder: string): Promise<void> {
  const url = new URL(embedded.url);
  url.pathname = '/beside';
  const { rowCount } = await database.query("SELECT FROM pg_database WHERE datname = 'beside'");
  if (rowCount === 0) await database.query('CREATE DATABASE beside');
  versions.push({ root: resolve(folder), databaseUrl: url.href, database: open(url.href), suffix: ' beside' });
}

try {
  if (options.beside) await addVersion(options.beside);
  for (const version of versions) await prepare(version);
  await reset(database, versions);
  const workloads = options.workloads.split(',');
  const targets = [await startLimit(embedded.url)];
  for (const mode of ['one', 'nats'] as const)
    if (options.mode === mode || options.mode === 'both')
      for (const version of versions) targets.push(await startPlatform(version, mode, workloads));
  for (const target of targets) for (const workload of workloads) await verify(target, workload);
  const points: Point[] = [];
  for (let round = 0; round < Number(options.repeat); round++)
    for (const workload of workloads)
      for (const target of targets) {
        const requests = requestsOf(target, workload);
        await runLoad(target.baseUrl, requests, 32, Number(options.warmup));
        for (const connections of options.connections.split(',').map(Number)) {
          if (workload === 'W6' || workload === 'W5') await reset(database, versions);
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
