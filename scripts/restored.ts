/**
 * `npm run restored`: after a restore of the database, a recovery to a point in time or a failover, sees to it that whoever
 * follows changes starts over. Safe while services run, and any number of times: what has begun since the server was
 * started is kept, unless `--again` is given. Source: docs/guides/operators.md#after-a-restore.
 */
import { parseArgs } from 'node:util';
import { readConfig } from '../config/env.ts';
import { Database } from '../mixins/database/database.ts';
import { explained } from '../mixins/database/problem.ts';
import { beginAfterRestore } from '../services/data/trail/restored.ts';

const USAGE = 'Usage: npm run restored [-- --again]';
const TENANTS = 'SELECT id, key FROM metadata.tenants ORDER BY key';

const NEXT = `What else to do after a restore:
- End all processes of the platform and start them again: they may remember what was lost.
- npm run --silent audit -- verify
- Repeat what protects somebody and came after the backup: ended sessions and connections, deactivated users,
  changed passwords and secrets, rotated keys (call auth.keys.rotate).
- Tell clients: idempotency keys, versions and ETags from after the backup are given again.
docs/guides/operators.md#after-a-restore says it in full.`;

async function run(): Promise<number> {
  const { again } = parseArgs({ options: { again: { type: 'boolean', default: false } } }).values;
  const { databaseUrl } = readConfig(process.env, { command: true });
  if (!databaseUrl) throw new Error('Set DATABASE_URL to the address of the owner of the database.');
  const owner = new Database(databaseUrl, { size: 2, applicationName: 'erp restored' });
  try {
    const { rows } = await explained(owner.query<{ id: string; key: string }>(TENANTS), {
      variable: 'DATABASE_URL',
      url: databaseUrl,
    });
    let [begun, kept, failed] = [0, 0, 0];
    for (const { id, key } of rows)
      try {
        const { outcome, lacksIndexes } = await beginAfterRestore(owner, id, again);
        if (outcome === 'begun') begun++;
        else kept++;
        if (lacksIndexes)
          console.log(
            `${key}: indexes for search are missing. Was the dump restored in one step? Restore it in three.`,
          );
      } catch (error) {
        // One tenant that cannot be reached must not keep the others from it.
        console.log(`${key}: NOT DONE: ${error instanceof Error ? error.message : error}`);
        failed++;
      }
    console.log(`Whoever follows changes of ${begun} of ${rows.length} tenants starts over.`);
    if (kept > 0)
      console.log(`${kept} began anew since the server was started, and are left as they are (--again: these, too).`);
    console.log(`\n${NEXT}`);
    return failed > 0 ? 1 : 0;
  } finally {
    await owner.close();
  }
}

try {
  process.exitCode = await run();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  if ((error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')) console.error(USAGE);
  process.exitCode = 2;
}
