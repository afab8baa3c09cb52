/**
 * The platform for tests: main.ts's own start(), in this process, on a database of its own. With the demo tenants it is
 * a clone of a database that was seeded once per run, so a suite begins within a second or two.
 */
import type { ServiceBroker } from 'moleculer';
import { type Config, readConfig } from '../../config/env.ts';
import type { ServiceName } from '../../config/services.ts';
import { type Running, start } from '../../main.ts';
import type { GuardedFetch } from '../../mixins/outbound.ts';
import type { ShutdownTimes } from '../../mixins/shutdown.ts';
import { forgetTokens } from './client.ts';
import { createDatabase, demoTemplate, type TestDatabase } from './database.ts';
import { sharedFolder } from './temporary.ts';

export interface PlatformOptions {
  /** Default: all. */
  services?: readonly ServiceName[];
  natsUrl?: string;
  /** Demo tenants with their sample records; default true. */
  seed?: boolean;
  /** More of what config/env.ts reads, such as RATE_CONNECTION_UNITS. */
  env?: Record<string, string>;
  /** The internet, for addresses that tenants name. */
  outbound?: GuardedFetch;
  /** An existing database to run on (several platforms on one database); it is not dropped by stop(). */
  database?: TestDatabase;
}

export interface TestPlatform {
  /** http://127.0.0.1:<port>; empty when this process runs no gateway. */
  readonly baseUrl: string;
  readonly broker: ServiceBroker;
  readonly config: Config;
  readonly database: TestDatabase;
  /** Stops the services, without `times` at once, and drops the database. */
  stop(times?: ShutdownTimes): Promise<void>;
}

const running = new Set<TestPlatform>();

/** Configuration as config/env.ts reads it, for tests: a free port, no log, limits that are not reached by accident. */
export function testEnvironment(databaseUrl: string, more: Record<string, string> = {}): Record<string, string> {
  return {
    PORT: '0',
    HOST: '127.0.0.1',
    LOG_LEVEL: process.env['LOG_LEVEL'] ?? 'silent',
    DATABASE_URL: databaseUrl,
    DATA_DIR: sharedFolder('test-data'),
    RATE_CONNECTION_UNITS: '1000000000',
    RATE_TENANT_UNITS: '1000000000',
    RATE_ANONYMOUS_REQUESTS: '1000000000',
    RATE_DAILY_UNITS: '1000000000',
    SHUTDOWN_GRACE_SECONDS: '0',
    CONCURRENCY: '1000',
    CONCURRENCY_COSTLY: '1000',
    ...more,
  };
}

/** Fills a database with the demo tenants by starting the whole platform on it once. */
async function seedDatabase(url: string): Promise<void> {
  const seeding = await start(readConfig(testEnvironment(url)));
  await seeding.stop();
}

/** Empty database, or a clone of the seeded one. */
export async function createPlatformDatabase(options: { seed?: boolean } = {}): Promise<TestDatabase> {
  return createDatabase(options.seed === false ? {} : { template: await demoTemplate(seedDatabase) });
}

/** Starts services in this process. Call stop() in the after-hook. */
export async function startPlatform(options: PlatformOptions = {}): Promise<TestPlatform> {
  const database = options.database ?? (await createPlatformDatabase(options));
  const config = readConfig(
    testEnvironment(database.url, {
      SEED_DEMO: String(options.seed !== false),
      ...(options.services ? { SERVICES: options.services.join(',') } : {}),
      ...(options.natsUrl ? { NATS_URL: options.natsUrl } : {}),
      ...options.env,
    }),
  );
  let started: Running;
  try {
    started = await start(config, options.outbound ? { outbound: options.outbound } : {});
  } catch (error) {
    if (!options.database) await database.drop().catch(() => {});
    throw error;
  }
  const platform: TestPlatform = {
    baseUrl: started.baseUrl ?? '',
    broker: started.broker,
    config,
    database,
    stop: async (times) => {
      running.delete(platform);
      forgetTokens(platform.baseUrl);
      await started.stop(times);
      if (!options.database) await database.drop();
    },
  };
  running.add(platform);
  return platform;
}

/** For the after-hook of a run: platforms that no test stopped. */
export const platformsLeftRunning = (): string[] => [...running].map((platform) => platform.config.nodeId);
