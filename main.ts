/**
 * One program, any choice of services: reads the configuration, opens the database, migrates what its services own,
 * starts the broker, seeds the demo tenants where they are missing, and says `ready`.
 */

// First: it applies to the evaluation of all other modules.
import './config/young-generation.ts';
import { once } from 'node:events';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { ServiceBroker, type ServiceSchema } from 'moleculer';
import { brokerOptions, processLog } from './config/broker.ts';
import { busAddress } from './config/bus.ts';
import { type Config, ConfigError, databaseVariableOf, readConfig } from './config/env.ts';
import { SERVICES, type ServiceName } from './config/services.ts';
import { StartSteps } from './config/text-log.ts';
import type { TracingConfig } from './config/tracing.ts';
import { releaseYoungGeneration } from './config/young-generation.ts';
import { BUS_POLICY, calledBy, isRepeatable } from './contracts/bus.ts';
import { statementTimeoutOf } from './contracts/operations.ts';
import type { ProcessState } from './contracts/process.ts';
import { messageOf } from './lib/errors/thrown.ts';
import { membersOf } from './lib/json/objects.ts';
import { giveLibrariesPlatformTime } from './lib/values/clock.ts';
import { required } from './lib/values/required.ts';
import { openBlobs } from './mixins/blobs/open.ts';
import { natsBus } from './mixins/bus/nats-bus.ts';
import { secretMetadata } from './mixins/bus/shared-secret.ts';
import { standingAside } from './mixins/bus/standing-aside.ts';
import { takeover } from './mixins/bus/takeover.ts';
import { CertificateExpiries, type CertifiedServer } from './mixins/certificate-expiry.ts';
import { listenForOperators } from './mixins/control-socket.ts';
import { type Database, isConnectionError } from './mixins/database/database.ts';
import { startEmbeddedDatabase } from './mixins/database/embedded.ts';
import { ensureInstallation, fingerprints, rememberSecret } from './mixins/database/installation.ts';
import { ensureLogins } from './mixins/database/logins.ts';
import { databaseMetering } from './mixins/database/metering.ts';
import { ensureServiceRole, migrate } from './mixins/database/migrate.ts';
import { type OpenOptions, openDatabases } from './mixins/database/open.ts';
import { startingAgain } from './mixins/database/reachable.ts';
import { Timekeeper } from './mixins/database/timekeeper.ts';
import { databaseUnavailable } from './mixins/database/unavailable.ts';
import { following, requestFields } from './mixins/following.ts';
import {
  type Condition,
  conditionOf,
  type HealthServer,
  readyStateOf,
  registerProcessMetrics,
  startHealthServer,
} from './mixins/health.ts';
import { Jobs } from './mixins/jobs/jobs.ts';
import { brokerWarnings, failedActions, warnOf } from './mixins/log-failure.ts';
import { ActionCalls } from './mixins/metrics/action-calls.ts';
import { PRODUCT_VERSION } from './mixins/metrics/build.ts';
import { Metrics } from './mixins/metrics/metrics.ts';
import { type GuardedFetch, guardedFetch } from './mixins/outbound.ts';
import { peerCheck } from './mixins/peer-check.ts';
import type { Platform } from './mixins/platform.ts';
import { Presence } from './mixins/presence.ts';
import { AT_ONCE, type Edge, endWork, type ShutdownTimes } from './mixins/shutdown.ts';
import { tracedCalls } from './mixins/tracing/traced-calls.ts';
import { openTracing, type Tracing } from './mixins/tracing/tracing.ts';
import { startWaitingServer } from './mixins/waiting.ts';
import { Watchdog } from './mixins/watchdog/watchdog.ts';

const root = dirname(fileURLToPath(import.meta.url));

export interface Running {
  readonly broker: ServiceBroker;
  readonly config: Config;
  readonly baseUrl: string | null;
  /** Ends in order; without `times` callers get no notice. */
  stop(times?: ShutdownTimes): Promise<void>;
}

interface StartOptions {
  /** A platform without NATS opens its control socket, so that `npm run repl` finds it. */
  readonly control?: boolean;
  /** Aborted when the process is to end before it has started: the start closes what it has opened, and throws. */
  readonly stopped?: AbortSignal;
  /** Requests to addresses that tenants name; default: the guarded ones. */
  readonly outbound?: GuardedFetch;
  /** Told what a stop waits for. */
  readonly step?: (name: string) => void;
  /** Called with each part of the start that is done. */
  readonly done?: (part: string) => void;
}

/** Of the time to stop, for what the collector of traces has not got yet. */
const TRACES_MS = 1_000;
/** Of the time to stop, kept for what comes after the connections to the database. */
const CLOSED_MS = 700;

const migrationsOf = (service: string): string => join(root, 'services', service, 'migrations');

const migrationFiles = (service: string): string[] =>
  existsSync(migrationsOf(service)) ? readdirSync(migrationsOf(service)).filter((file) => file.endsWith('.sql')) : [];

/**
 * Migrations, roles and logins of the named services, as the owner of the database. Every process may run it, the
 * database's lock puts them in a row.
 */
export async function migrateServices(owner: Database, services: readonly ServiceName[]): Promise<void> {
  for (const service of services) {
    if (migrationFiles(service).length === 0) continue;
    await migrate(owner, service, migrationsOf(service));
    await ensureServiceRole(owner, service);
  }
  if (services.some((service) => SERVICES[service].database?.jobs)) await new Jobs(owner, { warn: () => {} }).install();
  await ensureLogins(owner, services);
  await ensureInstallation(owner);
}

/** Throws when the owner of the database has not run all migrations of a service. */
export async function checkMigrated(database: Database, service: ServiceName): Promise<void> {
  const files = migrationFiles(service);
  if (files.length === 0) return;
  const { rows } = await database.query<{ name: string }>(`SELECT name FROM ${service}.migrations`);
  const missing = files.filter((file) => !rows.some(({ name }) => name === file));
  if (missing.length > 0)
    throw new ConfigError(
      `The tables of ${service} lack ${missing.join(', ')}: run \`npm run migrate\` with the DATABASE_URL of the owner.`,
    );
}

/**
 * Starts the services of `config` in this process; resolves when they answer and the demo data is there.
 */
export async function start(config: Config, options: StartOptions = {}): Promise<Running> {
  const { stopped, step = () => {}, done = () => {} } = options;
  // The same lines before the broker is there as after it.
  const log = processLog(config, requestFields);
  const closers: ((times: ShutdownTimes, end: number) => Promise<void>)[] = [];
  const stop = async (times = AT_ONCE): Promise<void> => {
    // Last opened, first closed; what fails to close does not keep the rest open.
    let failure: unknown;
    const end = performance.now() + times.totalMs - CLOSED_MS;
    for (const close of closers.splice(0).reverse()) await close(times, end).catch((error) => (failure ??= error));
    if (failure) throw failure;
  };
  try {
    // The embedded database belongs to one instance at a time, and the control socket is its lock.
    const control =
      embeds(config) || (options.control && !config.bus) ? await listenForOperators(config.dataDir) : null;
    if (control) closers.push(control.close);
    const embedded = !embeds(config)
      ? null
      : await startEmbeddedDatabase(config.dataDir, {
          log: (line) => log.debug(line),
          warn: (message) => log.warn(message),
        });
    if (embedded)
      closers.push(() => {
        step('the embedded database to stop');
        return embedded.stop();
      });
    let reason: string | null = null;
    const health = { port: config.healthPort ?? 0, host: config.healthHost };
    const probes = config.healthPort === null || embedded ? null : await startWaitingServer(health, () => reason);
    const opening: OpenOptions = {
      url: config.databaseUrl ?? embedded?.url ?? null,
      prepare: async (owner) => {
        done('database');
        await migrateServices(owner, config.services);
        done('migrations');
      },
      check: checkMigrated,
      warn: (message) => log.warn(message),
      waiting: (what) => {
        reason = what;
        if (what !== null) step(what);
      },
      stopped,
    };
    const metrics = new Metrics();
    const { tracing } = config;
    const traces = tracing ? await startTraces(tracing, config, metrics, (message) => log.warn(message)) : null;
    const databases = await unlessStopped(() => openDatabases(config, opening), stopped).finally(() => probes?.close());
    closers.push(async (_, end) => {
      step('the database connections to close');
      await Promise.all([...databases.values()].map((database) => database.close(end - performance.now())));
    });
    const databaseOf = (service: ServiceName): Database => required(databases, service);
    const timekeeper = await Timekeeper.start(databaseOf(config.services[0]));
    closers.push(async () => timekeeper.stop());

    // After what is under way has ended, and before the connections are closed.
    closers.push(async (_, end) => {
      step('traces to be sent');
      await traces?.stop(Math.min(TRACES_MS, end - performance.now()));
      openTracing(null);
    });
    const calls = new ActionCalls();
    const secret = secretMetadata(fingerprints(config));
    const { promise: refusedToJoin, reject: refuse } = Promise.withResolvers<never>();
    refusedToJoin.catch(() => {});
    const refuseToJoin = (reason: string): void => refuse(new ConfigError(reason));
    const bus = config.bus ? natsBus(config, BUS_POLICY, timekeeper, { secret, foreign: refuseToJoin }) : null;
    const broker = new ServiceBroker({
      ...brokerOptions(config, requestFields),
      metadata: secret,
      middlewares: [
        brokerWarnings,
        failedActions(),
        ...(traces ? [tracedCalls()] : []),
        databaseUnavailable,
        standingAside(databases),
        databaseMetering(statementTimeoutOf),
        peerCheck(),
        takeover(isRepeatable),
        // It sees what callers get.
        calls.middleware,
        // The last one is around all others: what they log belongs to the request, too.
        following,
      ],
      ...(bus ? { transporter: bus } : control && options.control ? { transporter: control.transporter } : {}),
    });
    // Any login that works on queues will do: they are the same for all.
    const worker = config.services.find((service) => SERVICES[service].database?.jobs) ?? config.services[0];
    const jobs = new Jobs(databaseOf(worker), {
      install: false,
      warn: (error, message) => warnOf(log, error, message),
    });
    const outbound = options.outbound ?? guardedFetch(config.ssoPrivateHosts);
    const blobs = await openBlobs(config);
    const shared = { config, databases, timekeeper, jobs, blobs, metrics, broker, outbound };
    calls.register(shared.metrics);
    const platform = (service: ServiceName): Platform => ({
      ...shared,
      service,
      database: databaseOf(service),
      log: broker.getLogger(service, { svc: service }),
    });
    let watchdog: Watchdog | undefined;
    let certificates: CertificateExpiries | undefined;
    closers.push(async () => certificates?.stop());
    closers.push(async () => watchdog?.stop());
    let started = false;
    const gatewayService = (): Partial<GatewayService> | undefined => broker.getLocalService('gateway') as never;
    const own = platform(config.services[0]);
    // A gateway watches all services itself.
    const hasGateway = config.services.includes('gateway');
    const presence = new Presence(broker, hasGateway ? [] : calledBy(config.services));
    if (!hasGateway) presence.register(shared.metrics);
    const ownCondition = (): Condition => conditionOf(own, presence);
    const ready = readyStateOf(
      own,
      broker,
      (checked) =>
        started ? (gatewayService()?.readiness ?? checked)() : checked().then((checks) => ({ ...checks, started })),
      () => (started ? (gatewayService()?.condition ?? ownCondition)() : {}),
    );
    registerProcessMetrics(own, broker);
    const describe = async (): Promise<ProcessState> => ({
      readiness: await ready(),
      metrics: await shared.metrics.text(),
    });
    for (const name of config.services) {
      const module = (await import(`./services/${name}/${name}.service.ts`)) as {
        default: (p: Platform) => ServiceSchema | Promise<ServiceSchema>;
      };
      const schema = await module.default(platform(name));
      // Each service may offer its own names alone, so an operator asks for a process by one of its services.
      broker.createService({ ...schema, actions: { ...schema.actions, 'process.describe': describe } });
    }
    let healthServer: HealthServer | undefined;
    closers.push((times) =>
      endWork(
        {
          broker,
          jobs,
          health: healthServer,
          edge: gatewayService()?.edge,
          onBus: config.bus !== null,
          step,
        },
        times,
      ),
    );
    // Before the bus is there: a process that waits for it is alive, and must not be killed for its silence.
    if (config.healthPort !== null) healthServer = await startHealthServer(own, broker, health, ready);
    await unlessStopped(() => Promise.race([broker.start(), refusedToJoin]), stopped);
    done('services');
    await unlessStopped(() => rememberSecret(databaseOf(config.services[0]), config), stopped);
    if (config.seedDemo && config.services.includes('metadata')) {
      const { seedDemo } = await import('./templates/seed.ts');
      await unlessStopped(() => seedDemo(broker, config, databaseOf('metadata'), done), stopped);
    }
    started = true;
    const certified = new Map<string, CertifiedServer>(
      databases.entries().map(([service, database]) => [databaseVariableOf(service, config), database]),
    );
    if (bus) certified.set('NATS_URL', bus);
    certificates = new CertificateExpiries({ files: config.certificateFiles, servers: certified }, (message) =>
      log.warn(message),
    );
    certificates.register(metrics);
    releaseYoungGeneration();
    // From now on: no request waits for a starting process, and loading its modules blocks the event loop.
    watchdog = new Watchdog((stall) => log.warn(stall, 'The event loop was blocked.'));
    watchdog.register(shared.metrics);
    return { broker, config, baseUrl: gatewayService()?.baseUrl ?? null, stop };
  } catch (error) {
    await stop().catch(() => {});
    throw error;
  }
}

/** The part of the gateway's service that the process uses. */
interface GatewayService {
  readonly baseUrl: string;
  readonly readiness: () => Promise<Record<string, boolean>>;
  readonly condition: () => Condition;
  readonly edge: Edge;
}

/** Loads what traces need, which a process without them never does. */
async function startTraces(
  tracing: TracingConfig,
  { nodeId }: Config,
  metrics: Metrics,
  warn: (message: string) => void,
): Promise<Tracing> {
  const { startOtel } = await import('./mixins/tracing/otel.ts');
  const traces = startOtel(tracing, { nodeId, version: PRODUCT_VERSION, metrics, warn });
  openTracing(traces);
  return traces;
}

/** Waits for a part of the start; rejects when the process is to end before. */
async function unlessStopped<T>(begin: () => PromiseLike<T>, stopped: AbortSignal | undefined): Promise<T> {
  stopped?.throwIfAborted();
  const work = begin();
  if (!stopped) return work;
  const end = new AbortController();
  const ended = once(stopped, 'abort', { signal: end.signal }).then((): never => {
    throw stopped.reason;
  });
  ended.catch(() => {});
  return Promise.race([work, ended]).finally(() => end.abort());
}

/** A process that is given no database has one of its own. */
const embeds = ({ databaseUrl, databaseUrls }: Config): boolean =>
  databaseUrl === null && Object.keys(databaseUrls).length === 0;

/** One sentence for what a person can put right; everything else as it is. */
function explain(error: unknown): unknown {
  const { name, code, port } = membersOf(error);
  const message = messageOf(error);
  if (name === 'ConfigError') return message;
  if (code === 'EADDRINUSE') return `Port ${port} is in use: choose another one with PORT (or HEALTH_PORT).`;
  if (isConnectionError(error)) return `The database cannot be reached: ${message}`;
  if (code === '42501') return `The account of the database lacks a right: ${message}`;
  return error;
}

/** Services that every record passes: a request cost up to a third more after a last-resort collection. */
const HOT: ReadonlySet<ServiceName> = new Set(['gateway', 'data']);

/** Collects what loading the program left in the heap. */
function shrinkHeap(): void {
  setFlagsFromString('--expose-gc');
  const collect: NodeJS.GCFunction = runInNewContext('gc');
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/** Signals of one intention: npm and the terminal hand over the same Ctrl-C each. */
const SAME_SIGNAL_MS = 500;
const NOTICE_MS = 1_000;
/** Of the whole time, kept for the end of the process itself. */
const EXIT_MS = 500;

/** Starts what the environment says, and ends it in order at the first signal, and at once at a second one. */
async function run(): Promise<void> {
  const stopped = new AbortController();
  let running: Running | undefined;
  let config: Config | undefined;
  let signalledAt: number | undefined;
  let step = 'the start';
  let times = AT_ONCE;
  const abandon = (why: string): never => {
    console.error(`${why}; it was waiting for ${step}.`);
    process.exit(1);
  };
  const end = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    if (signalledAt !== undefined) {
      if (now - signalledAt > SAME_SIGNAL_MS) abandon(`A second signal (${signal}) has ended the process at once`);
      return;
    }
    signalledAt = now;
    if (config)
      processLog(config).info({ signal, seconds: config.shutdownSeconds }, `Received ${signal}, shutting down.`);
    // A person at a terminal has no load balancer.
    if (signal !== 'SIGTERM') times = { ...times, graceMs: 0 };
    setTimeout(() => abandon(`The process did not end within ${times.totalMs / 1_000} s`), times.totalMs - EXIT_MS);
    if (!running) stopped.abort();
    else
      running.stop(times).then(
        () => process.exit(0),
        (error) => {
          console.error(explain(error));
          process.exit(1);
        },
      );
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, end);
  try {
    config = readConfig();
    times = {
      graceMs: config.shutdownGraceSeconds * 1_000,
      noticeMs: NOTICE_MS,
      totalMs: config.shutdownSeconds * 1_000,
    };
    const settings = config;
    const steps = config.logFormat === 'text' ? new StartSteps(console.log) : null;
    const options = {
      control: true,
      stopped: stopped.signal,
      step: (name: string) => void (step = name),
      done: (part: string) => steps?.ended(part),
    };
    if (steps) console.log(`ERP platform ${PRODUCT_VERSION} starts. Ctrl-C ends it.`);
    const warn = (message: string): void => processLog(settings).warn(message);
    const started = await startingAgain(() => start(settings, options), { stopped: stopped.signal, warn });
    running = started;
    if (!settings.services.some((service) => HOT.has(service))) shrinkHeap();
    const { bus } = started.config;
    const onBus = bus ? ` on ${busAddress(bus)}` : '';
    const ready = `ready ${started.baseUrl ?? `${started.config.services.join(',')}${onBus}`}`;
    // For what reads the log; the plain line is for people and for scripts that wait for it.
    processLog(config).info({ services: config.services, seconds: Math.round(process.uptime() * 10) / 10 }, ready);
    console.log(ready);
  } catch (error) {
    if (stopped.signal.aborted) process.exit(0);
    console.error(explain(error));
    process.exit(1);
  }
}

// The path that it was started by may lead through a link, such as that to the release in use.
if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === import.meta.filename) {
  // V8 would look through the whole heap for every 64 MiB of buffers, which bodies of a megabyte soon are: stops of 10 to
  // 30 ms that free nothing. Now buffers count towards the one limit that grows with the heap.
  setFlagsFromString('--external-memory-accounted-in-global-limit');
  giveLibrariesPlatformTime();
  await run();
}
