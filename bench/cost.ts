/**
 * `npm run bench:cost` compares the cost of a request of the hot paths with recorded values, and fails where they differ.
 * Work is counted, processor time is measured in that of the limit server, which does the same work in the same seconds.
 * `--work` leaves out processor time, which needs wrk and a quiet machine. `--record` keeps the measured values.
 * `--functions <folder>` prints the functions below a folder that a request calls, and how often.
 */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Database } from '../mixins/database/database.ts';
import { startEmbeddedDatabase } from '../mixins/database/embedded.ts';
import { stopOwnServer } from '../test/support/database.ts';
import { advice, type Cost, deviations, lines, record, WORKLOADS } from './costs.ts';
import { ensureWrk, runLoad } from './load.ts';
import { prepare, reset, startLimit, startPlatform, stopChildren, work } from './platform.ts';
import { root } from './tenant.ts';
import { type Counted, countWork } from './work.ts';
import type { Target } from './workloads.ts';

const CONNECTIONS = 32;
const ROUND_SECONDS = 1;
const ROUNDS = 6;
/** Starts of the platform; the cheapest counts, since other work on the machine makes a request dearer, never cheaper. */
const STARTS = 3;

const { values: options } = parseArgs({
  options: {
    work: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
    functions: { type: 'string' },
  },
});

/** Nanoseconds on a processor of all threads of a process. */
function cpuNanoseconds(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  return readdirSync(tasks).reduce((sum, task) => {
    const [used = '0'] = readFileSync(join(tasks, task, 'schedstat'), 'utf8').split(' ');
    return sum + Number(used);
  }, 0);
}

/** Nanoseconds of processor time of a request. */
async function load({ baseUrl, requests, pids: [pid = 0] }: Target, workload: string): Promise<number> {
  const before = cpuNanoseconds(pid);
  const result = await runLoad(baseUrl, requests[workload] ?? [], CONNECTIONS, ROUND_SECONDS);
  if (result.errors > 0) throw new Error(`${workload}: ${result.errors} requests failed.`);
  return (cpuNanoseconds(pid) - before) / result.requests;
}

/** Ratio of the cheapest of several rounds of each, which other work on the machine disturbed least. */
async function measureCpu(limit: Target, platform: Target, workload: string): Promise<number> {
  const least = { limit: Infinity, platform: Infinity };
  for (const target of [limit, platform]) await load(target, workload);
  for (let n = 0; n < ROUNDS; n++) {
    least.limit = Math.min(least.limit, await load(limit, workload));
    least.platform = Math.min(least.platform, await load(platform, workload));
  }
  return least.platform / least.limit;
}

/** Processor time of each workload. Those that deviate from the record are measured in up to three starts. */
async function cpuOfWorkloads(): Promise<Record<string, Pick<Cost, 'cpu'>>> {
  mkdirSync(work, { recursive: true });
  ensureWrk();
  const embedded = await startEmbeddedDatabase(work);
  const database = new Database(embedded.url, { size: 2, applicationName: 'bench' });
  const version = { root, databaseUrl: embedded.url, database, suffix: '' };
  const found: Record<string, Pick<Cost, 'cpu'>> = {};
  try {
    await prepare(version);
    let open: readonly string[] = WORKLOADS;
    for (let start = 0; start < STARTS && open.length > 0; start++) {
      const limit = await startLimit(embedded.url);
      const platform = await startPlatform(version, 'one', WORKLOADS);
      for (const workload of open) {
        await reset(database, [version]);
        const cpu = Math.min(found[workload]?.cpu ?? Infinity, await measureCpu(limit, platform, workload));
        found[workload] = { cpu };
        console.log(lines({ [workload]: { cpu } }).join('\n'));
      }
      await stopChildren();
      if (!options.record)
        open = open.filter((workload) => deviations({ [workload]: found[workload] ?? {} }).length > 0);
    }
    return found;
  } finally {
    await stopChildren();
    await database.close();
    await embedded.stop();
  }
}

/** The most frequent first. */
function printFunctions(workload: string, functions: Counted['functions'], folder: string): void {
  const called = [...functions].filter(([name]) => folder === '.' || name.startsWith(`${folder}/`));
  const calls = called.reduce((sum, [, count]) => sum + count, 0);
  const files = new Set(called.map(([name]) => name.split(' ')[0]));
  console.log(
    `${workload}: ${calls.toFixed(1)} calls of ${called.length} functions in ${files.size} files of ${folder}`,
  );
  for (const [name, count] of called.toSorted(([, a], [, b]) => b - a)) {
    const [file, , functionName] = name.split(' ');
    console.log(`${count.toFixed(1).padStart(9)} ${file} ${functionName || '(anonymous)'}`);
  }
}

const costs: Record<string, Partial<Cost>> = {};
try {
  for (const [workload, counted] of await countWork(WORKLOADS)) {
    costs[workload] = counted.work;
    if (options.functions !== undefined) printFunctions(workload, counted.functions, options.functions);
  }
} finally {
  await stopOwnServer();
}
console.log(lines(costs).join('\n'));
if (!options.work)
  for (const [workload, cpu] of Object.entries(await cpuOfWorkloads()))
    costs[workload] = { ...costs[workload], ...cpu };
if (options.record) record(costs);
else {
  const differing = deviations(costs);
  if (differing.length > 0) {
    console.error(advice(differing));
    process.exitCode = 1;
  }
}
