/**
 * One program, any choice of services: reads the configuration, opens the database, migrates what its services own,
 * starts the broker, seeds the demo tenants where they are missing, and says `ready`.
 */

import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { ServiceBroker } from 'moleculer';
import { brokerOptions } from './config/broker.ts';
import { busAddress } from './config/bus.ts';
import { type Config, ConfigError, readConfig } from './config/env.ts';
import type { ServiceName } from './config/services.ts';
import { BUS_POLICY } from './contracts/bus.ts';
import { statementTimeoutOf } from './contracts/operations.ts';
import { natsBus } from './mixins/bus/nats-bus.ts';
import { listenForOperators } from './mixins/control-socket.ts';
import { type Database, isConnectionError } from './mixins/database/database.ts';
import { startEmbeddedDatabase } from './mixins/database/embedded.ts';
import { ensureInstallation } from './mixins/database/installation.ts';
import { ensureLogins } from './mixins/database/logins.ts';
import { databaseMetering } from './mixins/database/metering.ts';
import { ensureServiceRole, migrate } from './mixins/database/migrate.ts';
import { openDatabases } from './mixins/database/open.ts';
import { databaseUnavailable } from './mixins/database/unavailable.ts';
import { type HealthServer, startHealthServer } from './mixins/health.ts';
import { Jobs } from './mixins/jobs/jobs.ts';
import { Metrics } from './mixins/metrics/metrics.ts';
import type { Platform } from './mixins/platform.ts';
import { pulse } from './mixins/pulse.ts';
import { namedWork, Watchdog } from './mixins/watchdog/watchdog.ts';
import { seedDemo } from './templates/seed.ts';

const root = dirname(fileURLToPath(import.meta.url));

export interface Running {
  readonly broker: ServiceBroker;
  readonly config: Config;
  readonly baseUrl: string | null;
  stop(): Promise<void>;
}

const migrationsOf = (service: string): string => join(root, 'services', service, 'migrations');

const migrationFiles = (service: string): string[] =>
  existsSync(migrationsOf(service)) ? readdirSync(migrationsOf(service)).filter((file) => file.endsWith('.sql')) : [];

/** Services that work on job queues. */
const WITH_JOBS: readonly ServiceName[] = ['data', 'metadata', 'analytics', 'agent'];

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
  if (services.some((service) => WITH_JOBS.includes(service)))
    await new Jobs(owner, { services, warn: () => {} }).install();
  await ensureLogins(owner, services);
  await ensureInstallation(owner);
}

/** Throws when the owner of the database has not run all migrations of a service. */
async function checkMigrated(database: Database, service: ServiceName): Promise<void> {
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
 * `control`: a platform without NATS opens its control socket, so that `npm run repl` finds it.
 */
export async function start(config: Config, options: { control?: boolean } = {}): Promise<Running> {
  const closers: (() => Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    // Last opened, first closed; what fails to close does not keep the rest open.
    let failure: unknown;
    for (const close of closers.splice(0).reverse()) await close().catch((error) => (failure ??= error));
    if (failure) throw failure;
  };
  try {
    let broker: ServiceBroker | undefined;
    // The embedded database belongs to one instance at a time, and the control socket is its lock.
    const control =
      embeds(config) || (options.control && !config.bus) ? await listenForOperators(config.dataDir) : null;
    if (control) closers.push(control.close);
    const embedded = !embeds(config)
      ? null
      : await startEmbeddedDatabase(config.dataDir, {
          log: (line) => broker?.logger.debug(line),
          warn: (message) => broker?.logger.warn(message),
        });
    if (embedded) closers.push(embedded.stop);
    const databases = await openDatabases(config, {
      url: config.databaseUrl ?? embedded?.url ?? null,
      prepare: (owner) => migrateServices(owner, config.services),
      check: checkMigrated,
      warn: (message) => (broker ? broker.logger.warn(message) : console.warn(message)),
    });
    closers.push(async () => void (await Promise.all([...databases.values()].map((database) => database.close()))));
    const databaseOf = (service: ServiceName): Database => databases.get(service)!;

    broker = new ServiceBroker({
      ...brokerOptions(config),
      middlewares: [namedWork, databaseUnavailable, databaseMetering(statementTimeoutOf), pulse()],
      ...(config.bus
        ? { transporter: natsBus(config, BUS_POLICY) }
        : control && options.control
          ? { transporter: control.transporter }
          : {}),
    });
    // Any login that works on queues will do: they are the same for all.
    const worker = WITH_JOBS.find((service) => databases.has(service)) ?? config.services[0]!;
    const jobs = new Jobs(databaseOf(worker), {
      services: config.services,
      install: false,
      warn: (error, message) => broker?.logger.warn({ err: error }, message),
    });
    const shared = { config, databases, jobs, metrics: new Metrics() };
    const platform = (service: ServiceName): Platform => ({ ...shared, database: databaseOf(service) });
    const watchdog = new Watchdog((stall) => broker?.logger.warn(stall, 'The event loop was stopped.'));
    watchdog.register(shared.metrics);
    closers.push(async () => watchdog.stop());
    for (const name of config.services) {
      const module = (await import(`./services/${name}/${name}.service.ts`)) as { default: (p: Platform) => never };
      broker.createService(module.default(platform(name)));
    }
    let health: HealthServer | undefined;
    closers.push(async () => {
      health?.drain();
      // Together: jobs under way may need the services, and both have the same seconds to end.
      await Promise.all([jobs.stop(), broker.stop()]);
      await health?.close();
    });
    let started = false;
    const gatewayService = (): { baseUrl?: string; readiness?: () => Promise<Record<string, boolean>> } | undefined =>
      broker?.getLocalService('gateway') as never;
    if (config.healthPort !== null) {
      const address = { port: config.healthPort, host: config.healthHost };
      // Before the bus is there: a process that waits for it is alive, and must not be killed for its silence.
      health = await startHealthServer(platform(config.services[0]!), broker, address, (own) =>
        started ? (gatewayService()?.readiness ?? own)() : own().then((checks) => ({ ...checks, started })),
      );
    }
    await broker.start();
    if (config.seedDemo && config.services.includes('metadata')) await seedDemo(broker, config, databaseOf('metadata'));
    started = true;
    return { broker, config, baseUrl: gatewayService()?.baseUrl ?? null, stop };
  } catch (error) {
    await stop().catch(() => {});
    throw error;
  }
}

/** A process that is given no database has one of its own. */
const embeds = ({ databaseUrl, databaseUrls }: Config): boolean =>
  databaseUrl === null && Object.keys(databaseUrls).length === 0;

/** One sentence for what a person can put right; everything else as it is. */
function explain(error: unknown): unknown {
  const { name, message, code, port } = error as Error & { code?: string; port?: number };
  if (name === 'ConfigError') return message;
  if (code === 'EADDRINUSE') return `Port ${port} is in use: choose another one with PORT (or HEALTH_PORT).`;
  if (isConnectionError(error)) return `The database cannot be reached: ${message}`;
  if (code === '42501') return `The account of the database lacks a right: ${message}`;
  return error;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  // V8 would look through the whole heap for every 64 MiB of buffers, which bodies of a megabyte soon are: stops of 10 to
  // 30 ms that free nothing. Now buffers count towards the one limit that grows with the heap.
  setFlagsFromString('--external-memory-accounted-in-global-limit');
  try {
    const running = await start(readConfig(), { control: true });
    let stopping = false;
    const shutdown = (): void => {
      if (stopping) return;
      stopping = true;
      const limit = setTimeout(() => process.exit(1), 9_500);
      limit.unref();
      running.stop().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    };
    process.on('SIGTERM', shutdown);
    process.on('SIGINT', shutdown);
    process.on('SIGHUP', shutdown);
    console.log(
      `ready ${running.baseUrl ?? `${running.config.services.join(',')} on ${busAddress(running.config.bus!)}`}`,
    );
  } catch (error) {
    console.error(explain(error));
    process.exit(1);
  }
}
