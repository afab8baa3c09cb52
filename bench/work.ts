/**
 * Counts the work of a request, which is the same on every machine and under any load. The platform runs in this thread,
 * another thread sends the requests one after the other, and the least of several rounds counts, which timers and other
 * work beside requests disturbed least.
 */
import { once } from 'node:events';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { GCProfiler, getHeapStatistics, promiseHooks } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { tenantSchema } from '../lib/context.ts';
import { Database } from '../mixins/database/database.ts';
import { startPlatform } from '../test/support/platform.ts';
import { loadPlain, loadTenant } from './dataset.ts';
import type { SenderData } from './sender.ts';
import { addBenchTenant, root, tokenFor } from './tenant.ts';
import { platformTarget, type Target, verify } from './workloads.ts';

/** Of one request, on average of a round. */
export interface Work {
  /** Statements sent to the database, those that begin and end transactions included. */
  readonly statements: number;
  /** Calls of functions of the platform and of its dependencies; those inside of Node and V8 do not count. */
  readonly calls: number;
  readonly promises: number;
  /** Allocated on the heap of V8, in thousands of bytes. */
  readonly kilobytes: number;
}

/** Work of a workload, and calls of each function, by its file, position and name. */
export interface Counted {
  readonly work: Work;
  readonly functions: ReadonlyMap<string, number>;
}

/** Enough for every row that the requests of a round name; the rest of the data set changes nothing that is counted. */
const INVOICES = 12_000;
/** Until functions are compiled, statements prepared and caches filled. */
const WARM_UP = 60;
const ROUNDS = 15;
const REQUESTS_PER_ROUND = 20;

const ROOT = `${pathToFileURL(root).href}/`;
const DEPENDENCIES = '/node_modules/';
const QUERY = /^node_modules\/pg\/lib\/client\.js \d+ query$/;

/** Path below the repository; null for code outside of requests: the benchmark, tests, and Node itself. */
function pathOf(url: string): string | null {
  const at = url.lastIndexOf(DEPENDENCIES);
  if (at >= 0) return url.slice(at + 1);
  if (!url.startsWith(ROOT)) return null;
  const path = url.slice(ROOT.length);
  return path.startsWith('bench/') || path.startsWith('test/') ? null : path;
}

/**
 * Counts the work of this thread in rounds. V8 optimizes no function while it counts calls, so that allocations do not
 * depend on which functions it has optimized.
 */
class Counters {
  readonly #session = new Session();
  #promises = 0;
  #stopPromises: (() => void) | undefined;

  async start(): Promise<void> {
    this.#session.connect();
    await this.#session.post('Profiler.enable');
    await this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    const stop = promiseHooks.onInit(() => {
      this.#promises++;
    });
    this.#stopPromises = () => void stop();
  }

  stop(): void {
    this.#stopPromises?.();
    // Ends the coverage, too.
    this.#session.disconnect();
  }

  async round(requests: number, send: (count: number) => Promise<unknown>): Promise<Counted> {
    await this.#functions();
    const collections = new GCProfiler();
    collections.start();
    this.#promises = 0;
    const before = getHeapStatistics().used_heap_size;
    await send(requests);
    const promises = this.#promises;
    const after = getHeapStatistics().used_heap_size;
    const collected = collections
      .stop()
      .statistics.map(
        ({ beforeGC, afterGC }) => beforeGC.heapStatistics.usedHeapSize - afterGC.heapStatistics.usedHeapSize,
      );
    const bytes = after - before + collected.reduce((sum, freed) => sum + freed, 0);
    const functions = await this.#functions();
    const calls = functions.values().reduce((sum, count) => sum + count, 0);
    const statements = functions.entries().reduce((sum, [name, count]) => sum + (QUERY.test(name) ? count : 0), 0);
    return {
      work: {
        statements: statements / requests,
        calls: calls / requests,
        promises: promises / requests,
        kilobytes: bytes / 1_000 / requests,
      },
      functions: new Map(functions.entries().map(([name, count]) => [name, count / requests])),
    };
  }

  /** Calls since the last time. */
  async #functions(): Promise<Map<string, number>> {
    const { result } = await this.#session.post('Profiler.takePreciseCoverage');
    const found = new Map<string, number>();
    for (const { url, functions } of result) {
      const path = pathOf(url);
      if (path === null) continue;
      for (const { functionName, ranges } of functions) {
        const [whole] = ranges;
        if (whole && whole.count > 0) found.set(`${path} ${whole.startOffset} ${functionName}`, whole.count);
      }
    }
    return found;
  }
}

/** Position of the round that counts, from the cheapest. V8 reports too few bytes for a rare round with a collection. */
const BYTES_RANK = 3;

/** The cheapest of several rounds, value by value. */
function cheapest(rounds: readonly Counted[]): Counted {
  const ranked = (read: (counted: Counted) => number): Counted[] => rounds.toSorted((a, b) => read(a) - read(b));
  const [first] = ranked(({ work }) => work.calls);
  if (!first) throw new Error('There are no rounds.');
  return {
    work: {
      statements: Math.min(...rounds.map(({ work }) => work.statements)),
      calls: first.work.calls,
      promises: Math.min(...rounds.map(({ work }) => work.promises)),
      kilobytes: ranked(({ work }) => work.kilobytes).at(BYTES_RANK)?.work.kilobytes ?? Number.NaN,
    },
    functions: first.functions,
  };
}

async function count(counters: Counters, target: Target, workload: string): Promise<Counted> {
  await verify(target, workload);
  const workerData: SenderData = { baseUrl: target.baseUrl, requests: target.requests[workload] ?? [] };
  const sender = new Worker(join(import.meta.dirname, 'sender.ts'), { workerData });
  const send = (requests: number): Promise<unknown> => {
    const sent = once(sender, 'message');
    sender.postMessage(requests);
    return sent;
  };
  try {
    await send(WARM_UP);
    const rounds: Counted[] = [];
    for (let round = 0; round < ROUNDS; round++) rounds.push(await counters.round(REQUESTS_PER_ROUND, send));
    return cheapest(rounds);
  } finally {
    await sender.terminate();
  }
}

/** The work of each workload, on a platform of its own in this process. */
export async function countWork(workloads: readonly string[]): Promise<Map<string, Counted>> {
  const platform = await startPlatform({ seed: false, env: { LOG_LEVEL: 'error' } });
  const counters = new Counters();
  try {
    const { tenantId, userId } = await addBenchTenant(platform.broker);
    const database = new Database(platform.database.url, { size: 1, applicationName: 'bench' });
    try {
      await loadPlain(database, INVOICES);
      await loadTenant(database, `"${tenantSchema(tenantId)}"`, userId);
    } finally {
      await database.close();
    }
    const { baseUrl } = platform;
    const token = await tokenFor(baseUrl);
    const target = await platformTarget('one process', baseUrl, [process.pid], token, workloads, INVOICES);
    await counters.start();
    const counted = new Map<string, Counted>();
    for (const workload of workloads) counted.set(workload, await count(counters, target, workload));
    return counted;
  } finally {
    counters.stop();
    await platform.stop();
  }
}
