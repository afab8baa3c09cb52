/**
 * One program, any choice of services: reads the configuration, opens the database, migrates what its services own,
 * starts the broker, seeds the demo tenants where they are missing, and says `ready`.
 */

import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ServiceBroker } from 'moleculer';
import { brokerOptions } from './config/broker.ts';
import { type Config, readConfig } from './config/env.ts';
import type { Platform } from './config/platform.ts';
import { Database } from './mixins/database/database.ts';
import { startEmbeddedDatabase } from './mixins/database/embedded.ts';
import { ensureServiceRole, migrate } from './mixins/database/migrate.ts';
import { seedDemo } from './templates/seed.ts';

const root = dirname(fileURLToPath(import.meta.url));

export interface Running {
  readonly broker: ServiceBroker;
  readonly config: Config;
  readonly baseUrl: string | null;
  stop(): Promise<void>;
}

/** Migrations of the named services; every process may run it, the database's lock puts them in a row. */
export async function migrateServices(database: Database, services: readonly string[]): Promise<void> {
  for (const service of services) {
    const directory = join(root, 'services', service, 'migrations');
    if (!existsSync(directory) || !readdirSync(directory).some((file) => file.endsWith('.sql'))) continue;
    await migrate(database, service, directory);
    await ensureServiceRole(database, service);
  }
}

/** Starts the services of `config` in this process; resolves when they answer and the demo data is there. */
export async function start(config: Config): Promise<Running> {
  const embedded = config.databaseUrl ? null : await startEmbeddedDatabase(config.dataDir);
  const url = config.databaseUrl ?? embedded!.url;
  let broker: ServiceBroker | undefined;
  const database = new Database(url, {
    size: config.databasePoolSize,
    applicationName: `erp ${config.nodeId}`,
    onError: (error) => broker?.logger.warn({ err: error }, 'An idle database connection was lost.'),
  });
  const stop = async (): Promise<void> => {
    await broker?.stop();
    await database.close();
    await embedded?.stop();
  };
  try {
    await migrateServices(database, config.services);
    broker = new ServiceBroker(brokerOptions(config));
    const platform: Platform = { config, database };
    for (const name of config.services) {
      const module = (await import(`./services/${name}/${name}.service.ts`)) as { default: (p: Platform) => never };
      broker.createService(module.default(platform));
    }
    await broker.start();
    if (config.seedDemo && config.services.includes('metadata')) await seedDemo(broker, config, database);
    const gateway = broker.getLocalService('gateway') as unknown as { baseUrl?: string } | undefined;
    return { broker, config, baseUrl: gateway?.baseUrl ?? null, stop };
  } catch (error) {
    await stop().catch(() => {});
    throw error;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const running = await start(readConfig());
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
    console.log(`ready ${running.baseUrl ?? `${running.config.services.join(',')} on ${running.config.natsUrl}`}`);
  } catch (error) {
    console.error(error instanceof Error && error.name === 'ConfigError' ? error.message : error);
    process.exit(1);
  }
}
