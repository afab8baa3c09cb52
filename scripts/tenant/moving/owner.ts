/**
 * The database for the commands that move tenants: as its owner, because a tenant is read and made across all services.
 * Source: docs/decisions/moving-a-tenant.md.
 */
import { readConfig } from '../../../config/env.ts';
import { ALL_SERVICES } from '../../../config/services.ts';
import { checkMigrated } from '../../../main.ts';
import type { Blobs } from '../../../mixins/blobs/blobs.ts';
import { openBlobs } from '../../../mixins/blobs/open.ts';
import { Database } from '../../../mixins/database/database.ts';
import { runningEmbeddedUrl } from '../../../mixins/database/embedded.ts';
import { explained } from '../../../mixins/database/problem.ts';
import { MovingRefused } from './items.ts';

/**
 * Runs `work` on the database of DATABASE_URL, or on the embedded one of the platform that runs on DATA_DIR. `blobs`: of FILES_URL. `region`: REGION;
 * null where it is not set, as on the machine of an operator.
 */
export async function asOwner<T>(
  name: string,
  work: (database: Database, blobs: Blobs, region: string | null) => Promise<T>,
): Promise<T> {
  const config = readConfig(process.env, { command: true });
  const url = config.databaseUrl ?? (await runningEmbeddedUrl(config.dataDir));
  if (url === null)
    throw new MovingRefused(
      'Set DATABASE_URL to the address of the owner of the database, as for npm run migrate; or DATA_DIR to the folder of ' +
        'a platform that runs with the embedded database.',
    );
  const database = new Database(url, { size: 3, applicationName: `erp ${name}` });
  try {
    const address = { variable: 'DATABASE_URL', url };
    for (const service of ALL_SERVICES) await explained(checkMigrated(database, service), address);
    return await work(database, await openBlobs(config), process.env['REGION'] ? config.region : null);
  } finally {
    await database.close();
  }
}
