/**
 * `npm run migrate`: brings the tables of all services and of all tenants up to date on DATABASE_URL, then exits. Safe
 * while services run and other migrations do: migrations only go forward and wait for each other under locks in the
 * database. What was interrupted, or failed for some of the tenants, is carried on when it is run again. Logins get the
 * passwords of DATABASE_URL_<SERVICE>; those whose address is not given keep theirs. `--wait` changes nothing: it returns when
 * the tables of SERVICES are as these need them, so that nothing of a new version starts before.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { type Config, readConfig } from '../config/env.ts';
import { ALL_SERVICES } from '../config/services.ts';
import { checkMigrated, migrateServices } from '../main.ts';
import { Database } from '../mixins/database/database.ts';
import { markProduction } from '../mixins/database/installation.ts';
import { givePasswords, warnOfMissingPasswords } from '../mixins/database/open.ts';
import { explained } from '../mixins/database/problem.ts';
import { requireSupportedServer } from '../mixins/database/server-version.ts';
import { readArguments } from './arguments.ts';
import { upgradeTenantsAloud } from './upgrade-tenants.ts';

const COMMAND = {
  name: 'migrate',
  usage:
    'npm run migrate [-- --wait]\n\nBrings the tables of all services and tenants up to date on DATABASE_URL, and gives the logins of\n' +
    'the services the passwords of DATABASE_URL_<SERVICE>. With --wait it changes nothing, and waits until somebody else\n' +
    'has done that for SERVICES, whose login DATABASE_URL is.',
};
/** Between two looks. */
const LOOK_MS = 2_000;
/** How often what is waited for is said again. */
const SAY_EVERY_MS = 30_000;

/** Until the login of the services works and finds their tables up to date. */
async function untilMigrated({ databaseUrl, services }: Config): Promise<void> {
  if (!databaseUrl) throw new Error('Set DATABASE_URL to the address with which the services of SERVICES sign in.');
  let saidAt = Number.NEGATIVE_INFINITY;
  for (;;) {
    const database = new Database(databaseUrl, { size: 1, applicationName: 'erp waits for the migration' });
    const check = async (): Promise<void> => {
      for (const service of services) await checkMigrated(database, service);
    };
    try {
      return await explained(check(), { variable: 'DATABASE_URL', url: databaseUrl });
    } catch (error) {
      if (performance.now() - saidAt >= SAY_EVERY_MS) {
        console.warn(`Waiting for the migration. ${error instanceof Error ? error.message : error}`);
        saidAt = performance.now();
      }
    } finally {
      await database.close();
    }
    await pause(LOOK_MS);
  }
}

try {
  const { values } = readArguments(COMMAND, { options: { wait: { type: 'boolean', default: false } } });
  const config = readConfig(process.env, { command: true });
  if (values.wait) {
    await untilMigrated(config);
    process.exit(0);
  }
  if (!config.databaseUrl) {
    console.error('Set DATABASE_URL: the embedded database is migrated by npm start itself.');
    process.exit(1);
  }
  const owner = new Database(config.databaseUrl, { size: 2, applicationName: 'erp migrate' });
  try {
    await explained(requireSupportedServer(owner, console.warn), { variable: 'DATABASE_URL', url: config.databaseUrl });
    await migrateServices(owner, ALL_SERVICES);
    if (config.production) await markProduction(owner);
    await givePasswords(owner, config, ALL_SERVICES, console.warn);
    await warnOfMissingPasswords(owner, config, ALL_SERVICES, console.warn);
    if ((await upgradeTenantsAloud(owner, console)) > 0) process.exitCode = 1;
  } finally {
    await owner.close();
  }
  if (process.exitCode === undefined) console.log('The database is up to date.');
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
