/**
 * What a cluster's probes ask of a process: alive, ready, and numbers for Prometheus. Processes with a gateway answer on
 * its port; the others open HEALTH_PORT for nothing else. Source: docs/reference/operations-cluster.md.
 */
import { createServer, type Server } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { ServiceBroker } from 'moleculer';
import type { Platform } from './platform.ts';

/** Seconds that an answer about readiness is believed, so that probes cost nothing. */
const READY_FRESH_MS = 1_000;
const DATABASE_ANSWER_MS = 1_000;

export interface Readiness {
  ready: boolean;
  checks: { database: boolean; bus: boolean };
}

/** The bus has this process: without NATS always. */
export function busConnected(broker: ServiceBroker): boolean {
  const transit = broker.transit as unknown as { connected: boolean; tx: { linked?: boolean } } | null | undefined;
  return !transit || (transit.connected && transit.tx.linked !== false);
}

/** Whether the database answers within the time limit. */
export async function databaseAnswers(platform: Platform, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, limitMs, false);
  });
  const answer = platform.database.query('SELECT 1').then(
    () => true,
    () => false,
  );
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

/** A function that says whether this process can do its work now; answers are remembered for a second. */
export function readinessOf(platform: Platform, broker: ServiceBroker): () => Promise<Readiness> {
  let asked = 0;
  let answer: Promise<Readiness> | undefined;
  return () => {
    const now = Date.now();
    if (!answer || now - asked > READY_FRESH_MS) {
      asked = now;
      answer = databaseAnswers(platform, DATABASE_ANSWER_MS).then((database) => {
        const bus = busConnected(broker);
        return { ready: database && bus, checks: { database, bus } };
      });
    }
    return answer;
  };
}

const loop = monitorEventLoopDelay({ resolution: 20 });

/** Numbers of the process, in the Prometheus text format (version 0.0.4). */
export function processMetrics(platform: Platform, broker: ServiceBroker): string {
  loop.enable();
  const { user, system } = process.cpuUsage();
  const memory = process.memoryUsage();
  const pool = platform.database.pool;
  const nodes = (broker.registry.nodes.toArray() as { available: boolean }[]).filter((node) => node.available).length;
  const lines: [name: string, type: 'gauge' | 'counter', help: string, value: number][] = [
    ['process_cpu_seconds_total', 'counter', 'Processor time used.', (user + system) / 1e6],
    ['process_resident_memory_bytes', 'gauge', 'Memory held.', memory.rss],
    ['process_start_time_seconds', 'gauge', 'Start of the process.', Date.now() / 1_000 - process.uptime()],
    ['nodejs_heap_used_bytes', 'gauge', 'JavaScript heap in use.', memory.heapUsed],
    ['nodejs_external_memory_bytes', 'gauge', 'Memory of buffers.', memory.external],
    [
      'nodejs_eventloop_lag_p99_seconds',
      'gauge',
      'Delay of the event loop since the last scrape.',
      loop.percentile(99) / 1e9,
    ],
    ['erp_database_connections', 'gauge', 'Connections in the pool.', pool.totalCount],
    ['erp_database_connections_idle', 'gauge', 'Connections nobody uses.', pool.idleCount],
    ['erp_database_waiting', 'gauge', 'Work that waits for a connection.', pool.waitingCount],
    ['erp_bus_connected', 'gauge', 'The bus has this process.', busConnected(broker) ? 1 : 0],
    ['erp_bus_nodes', 'gauge', 'Processes that this one sees.', nodes],
  ];
  loop.reset();
  return lines
    .map(([name, type, help, value]) => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name} ${value}\n`)
    .join('');
}

export interface HealthServer {
  readonly port: number;
  /** Readiness turns false at once, so that a cluster sends nothing new. */
  drain(): void;
  close(): Promise<void>;
}

/** Serves /healthz, /readyz and /metrics. */
export async function startHealthServer(
  platform: Platform,
  broker: ServiceBroker,
  listen: { port: number; host: string },
): Promise<HealthServer> {
  const readiness = readinessOf(platform, broker);
  let draining = false;
  const server: Server = createServer(async (request, response) => {
    const path = (request.url ?? '').split('?')[0];
    const answer = (status: number, type: string, body: string): void => {
      response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
      response.end(request.method === 'HEAD' ? undefined : body);
    };
    if (request.method !== 'GET' && request.method !== 'HEAD') return answer(405, 'text/plain', 'GET only\n');
    if (path === '/healthz') return answer(200, 'application/json', '{"status":"alive"}');
    if (path === '/metrics')
      return answer(200, 'text/plain; version=0.0.4; charset=utf-8', processMetrics(platform, broker));
    if (path !== '/readyz') return answer(404, 'text/plain', 'not found\n');
    const { ready, checks } = await readiness();
    const ok = ready && !draining;
    answer(ok ? 200 : 503, 'application/json', JSON.stringify({ status: ok ? 'ready' : 'unready', checks }));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(listen.port, listen.host, resolve);
  });
  return {
    port: (server.address() as { port: number }).port,
    drain: () => {
      draining = true;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
