/**
 * Probes of a process: alive, ready, and metrics for Prometheus, on HEALTH_PORT, which is open for
 * nothing else. Source: docs/reference/operations-cluster.md.
 */
import { createServer, type Server } from 'node:http';
import type { ServiceBroker } from 'moleculer';
import type { ServiceName } from '../config/services.ts';
import { machineClockOffset } from '../lib/values/clock.ts';
import { busConnected } from './bus/connected.ts';
import { availableNodes, lostNodes } from './bus/lost-nodes.ts';
import { repeats } from './bus/takeover.ts';
import { type BusTraffic, NO_TRAFFIC } from './bus/traffic.ts';
import type { Database, Degradation as DatabaseDegradation } from './database/database.ts';
import { listeningPort } from './listening-port.ts';
import { PRODUCT_VERSION } from './metrics/build.ts';
import type { Metrics, Sample } from './metrics/metrics.ts';
import { registerOwnMetrics } from './metrics/own-process.ts';
import type { Platform } from './platform.ts';
import type { Presence, ServiceState } from './presence.ts';

/** Milliseconds that an answer about readiness is believed, so that probes cost nothing. */
const READY_FRESH_MS = 1_000;
const DATABASE_ANSWER_MS = 1_000;

/** The health port is not public; it bounds nevertheless what a connection can hold, and how many there are. */
const BOUNDS = {
  headersTimeout: 5_000,
  requestTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16 * 1024,
} as const;
const CONNECTIONS_MAX = 1_000;
/** Nothing sent and nothing taken for so long ends a connection. */
const SILENCE_MS = 30_000;

/** Conditions of a process's readiness, and whether each holds. */
type Checks = Readonly<Record<string, boolean>>;

/** Functions that a ready process lacks, such as `authUnavailable`: no sign-in, while known grants go on for a while. */
export type Degradation = DatabaseDegradation | `${ServiceName}Unavailable`;

/** Traffic of the connection to NATS; empty without NATS. */
function busTraffic(broker: ServiceBroker): BusTraffic {
  const tx: object = broker.transit?.tx ?? {};
  const { traffic = NO_TRAFFIC }: { traffic?: BusTraffic } = tx;
  return traffic;
}

function refusedPackets(broker: ServiceBroker): number {
  const tx: object = broker.transit?.tx ?? {};
  const { refused = 0 }: { refused?: number } = tx;
  return refused;
}

/** True when the database answers all services of the process within the time limit. */
export async function databaseAnswers({ databases }: Platform, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, limitMs, false);
  });
  const answers = Promise.all(databases.values().map((database) => database.answers()));
  return Promise.race([answers.then((all) => all.every(Boolean)), late]).finally(() => clearTimeout(timer));
}

/** The answer to a question that others may have asked a moment ago: it is remembered for a second. */
export function rememberedBriefly<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked = 0;
  let answer: Promise<T> | undefined;
  return () => {
    const now = performance.now();
    if (!answer || now - asked > READY_FRESH_MS) {
      asked = now;
      answer = ask();
    }
    return answer;
  };
}

/** Beside what readiness needs: what a ready process does not do, and the state of the services that it calls. */
export interface Condition {
  /** Absent when it does all of its work. */
  readonly degraded?: readonly Degradation[];
  /** Absent where it calls none. */
  readonly services?: Readonly<Record<string, ServiceState>>;
}

/** The condition of a process now. `more`: what it does not do besides what its database does not. */
export function conditionOf({ databases }: Platform, presence: Presence, more: readonly Degradation[] = []): Condition {
  const degraded = [...new Set(databases.values().flatMap((database) => database.degraded)), ...more];
  const services = presence.states;
  return {
    ...(degraded.length > 0 ? { degraded } : {}),
    ...(Object.keys(services).length > 0 ? { services } : {}),
  };
}

/** A function that says whether this process can do its work now. */
function readinessOf(platform: Platform, broker: ServiceBroker): () => Promise<Checks> {
  const databaseReady = rememberedBriefly(() => databaseAnswers(platform, DATABASE_ANSWER_MS));
  return async () => ({
    database: await databaseReady(),
    bus: busConnected(broker),
    clock: platform.timekeeper.agrees,
  });
}

const registered = new WeakSet<Metrics>();

/** Adds the numbers of the process, its database pools and its bus to the metrics; once, however often it is called. */
export function registerProcessMetrics(platform: Platform, broker: ServiceBroker): void {
  const { metrics, databases, jobs, blobs } = platform;
  if (registered.has(metrics)) return;
  registered.add(metrics);
  registerOwnMetrics(metrics);
  metrics.gauges('erp_build_info', 'Always 1: what this process is.', ['version', 'node', 'postgres'], () => [
    [
      {
        version: PRODUCT_VERSION,
        node: process.versions.node,
        postgres: databases.values().find(({ serverVersion }) => serverVersion !== null)?.serverVersion ?? '',
      },
      1,
    ],
  ]);
  registerDatabaseUse(metrics, databases);
  jobs.register(metrics);
  blobs.register(metrics);
  registerBus(metrics, broker);
  metrics.gauge(
    'erp_clock_offset_seconds',
    'By how much the clock of the machine is ahead of the database.',
    () => machineClockOffset() / 1_000,
  );
}

function registerBus(metrics: Metrics, broker: ServiceBroker): void {
  metrics.gauge('erp_bus_connected', '1 when the message bus is connected or not needed.', () =>
    busConnected(broker) ? 1 : 0,
  );
  metrics.gauge('erp_bus_nodes', 'Available nodes, this one included.', () => availableNodes(broker));
  metrics.counters('erp_bus_nodes_lost_total', 'Processes lost, by how it was noticed.', ['detection'], () =>
    Object.entries(lostNodes(broker)).map(([detection, count]): Sample => [{ detection }, count]),
  );
  metrics.counters('erp_bus_repeats_total', 'Calls of lost processes, by what became of them.', ['outcome'], () =>
    Object.entries(repeats(broker)).map(([outcome, count]): Sample => [{ outcome }, count]),
  );
  metrics.counter('erp_bus_refused_total', 'Packets from the bus that were refused.', () => refusedPackets(broker));
  const traffic = (name: string, help: string, of: 'messages' | 'bytes'): void =>
    metrics.counters(name, help, ['direction'], () => {
      const { sent, received } = busTraffic(broker);
      return [
        [{ direction: 'sent' }, sent[of]],
        [{ direction: 'received' }, received[of]],
      ];
    });
  traffic('erp_bus_messages_total', 'Messages of the bus that this process sent and received.', 'messages');
  traffic('erp_bus_bytes_total', 'Bytes of these messages.', 'bytes');
}

/** Pools of the process together, and what each service made of its own. */
function registerDatabaseUse(metrics: Metrics, databases: Platform['databases']): void {
  const samples = (read: (database: Database) => number) => (): Iterable<Sample> =>
    databases.entries().map(([service, database]): Sample => [{ service }, read(database)]);
  const gauge = (name: string, help: string, read: (database: Database) => number): void =>
    metrics.gauges(name, help, ['service'], samples(read));
  metrics.gauges('erp_database_connections', 'Connections in the pool of a service.', ['service', 'state'], () =>
    databases.entries().flatMap(([service, { pool }]): Sample[] => [
      [{ service, state: 'in_use' }, pool.totalCount - pool.idleCount],
      [{ service, state: 'idle' }, pool.idleCount],
    ]),
  );
  gauge('erp_database_connections_max', 'Connections that the pool of a service may have.', ({ queue }) => queue.size);
  metrics.gauge('erp_database_read_only', '1 when the database takes no changes.', () =>
    databases.values().some(({ degraded }) => degraded.includes('databaseReadOnly')) ? 1 : 0,
  );
  metrics.counters('erp_database_failures_total', 'What the database could not do.', ['service', 'kind'], () =>
    databases
      .entries()
      .flatMap(([service, { failures }]) =>
        failures.entries().map(([kind, count]): Sample => [{ service, kind }, count]),
      ),
  );
  gauge('erp_database_waiting', 'Requests for a connection that wait.', ({ queue }) => queue.waiting);
  const counter = (name: string, help: string, read: (database: Database) => number): void =>
    metrics.counters(name, help, ['service'], samples(read));
  counter('erp_database_statements_total', 'Statements sent to the database.', ({ statements }) => statements);
  counter('erp_database_seconds_total', 'Time that connections were held.', ({ heldMs }) => heldMs / 1_000);
  counter('erp_database_waits_total', 'Requests that waited for a connection.', ({ queue }) => queue.totals.waits);
  counter(
    'erp_database_wait_seconds_total',
    'Time waited for connections.',
    ({ queue }) => queue.totals.waitedMs / 1_000,
  );
  counter('erp_database_refusals_total', 'Requests that got no connection.', ({ queue }) => queue.totals.refused);
}

/** Body of /readyz. */
type ReadyState = { readonly status: 'ready' | 'unready'; readonly checks: Checks } & Condition;

/**
 * Asks whether a process can do its work now. `readiness`: of one that knows better what it needs than its database and
 * bus; `condition`: what is said beside it.
 */
export function readyStateOf(
  platform: Platform,
  broker: ServiceBroker,
  readiness: (own: () => Promise<Checks>) => Promise<Checks> = (own) => own(),
  condition: () => Condition = () => ({}),
): () => Promise<ReadyState> {
  const own = readinessOf(platform, broker);
  return async () => {
    const checks = await readiness(own);
    return { status: Object.values(checks).every(Boolean) ? 'ready' : 'unready', checks, ...condition() };
  };
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
  ready: () => Promise<ReadyState>,
): Promise<HealthServer> {
  registerProcessMetrics(platform, broker);
  const scrape = rememberedBriefly(() => platform.metrics.text());
  let draining = false;
  const server: Server = createServer(BOUNDS, async (request, response) => {
    // Probes wait for their answer. Node hands over all requests that one packet holds, each with an answer to keep.
    if (!response.socket) return void request.socket.destroy();
    const path = (request.url ?? '').split('?')[0];
    const answer = (status: number, type: string, body: string): void => {
      response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
      response.end(request.method === 'HEAD' ? undefined : body);
    };
    if (request.method !== 'GET' && request.method !== 'HEAD') return answer(405, 'text/plain', 'GET only\n');
    if (path === '/healthz') return answer(200, 'application/json', '{"status":"alive"}');
    if (path === '/metrics') return answer(200, platform.metrics.contentType, await scrape());
    if (path !== '/readyz') return answer(404, 'text/plain', 'not found\n');
    const found = await ready();
    const state = draining ? { ...found, status: 'unready' } : found;
    answer(state.status === 'ready' ? 200 : 503, 'application/json', JSON.stringify(state));
  });
  server.maxConnections = CONNECTIONS_MAX;
  server.setTimeout(SILENCE_MS);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(listen.port, listen.host, resolve);
  });
  return {
    port: listeningPort(server),
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
