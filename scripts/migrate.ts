/**
 * `npm run migrate`: brings the tables of all services up to date on DATABASE_URL, then exits. Safe while services
 * run and other migrations do: migrations only go forward and wait for each other under a lock in the database. Logins
 * get the passwords of DATABASE_URL_<SERVICE>; those whose address is not given keep theirs.
 */
import { readConfig } from '../config/env.ts';
import { ALL_SERVICES } from '../config/services.ts';
import { migrateServices } from '../main.ts';
import { Database } from '../mixins/database/database.ts';
import { markProduction } from '../mixins/database/installation.ts';
import { givePasswords, warnOfMissingPasswords } from '../mixins/database/open.ts';
import { explained } from '../mixins/database/problem.ts';
import { requireSupportedServer } from '../mixins/database/server-version.ts';

try {
  const config = readConfig(process.env, { command: true });
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
  } finally {
    await owner.close();
  }
  console.log('The database is up to date.');
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
