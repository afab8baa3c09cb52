/**
 * `npm run restored`: after a restore of the database, a recovery to a point in time or a failover, sees to it that those
 * who follow changes start over. Safe while services run, and any number of times: what has begun since the server was
 * started is kept, unless `--again` is given. Brings the tables of tenants up to date before, where the backup is of an
 * older version. Source: docs/guides/operators.md#after-a-restore.
 */
import { readConfig } from '../config/env.ts';
import { ALL_SERVICES } from '../config/services.ts';
import { checkMigrated } from '../main.ts';
import { Database } from '../mixins/database/database.ts';
import { warnOfLostPasswords } from '../mixins/database/open.ts';
import { explained } from '../mixins/database/problem.ts';
import { beginAfterRestore } from '../services/data/trail/restored.ts';
import { readArguments } from './arguments.ts';
import { upgradeTenantsAloud } from './upgrade-tenants.ts';

const COMMAND = {
  name: 'restored',
  usage:
    'npm run restored [-- --again]\n\nTo be run after every restore of the database on DATABASE_URL, that of its owner. ' +
    '--again: also for\nwhat began anew since the database server was started.',
  exitCode: 2,
};
const READ_ONLY = `SELECT current_setting('transaction_read_only')::boolean AS "readOnly"`;
const IS_READ_ONLY =
  'Nothing was done: the database of DATABASE_URL is read-only (a standby, or default_transaction_read_only). Run it again ' +
  'when it takes changes.';
const TENANTS = 'SELECT id, key FROM metadata.tenants WHERE erasing_since IS NULL ORDER BY key';

const NEXT = `What else to do after a restore:
- If processes of the platform were running while the database was restored, end them and start them again: they may
  remember what was lost.
- npm run --silent audit -- verify, for each tenant with --tenant and --expect where an earlier check was noted down
- Repeat what protects somebody and came after the backup: ended sessions and connections, deactivated users,
  changed passwords and secrets, rotated keys (call auth.keys.rotate).
- Tell clients: idempotency keys, versions and ETags from after the backup are given again.
docs/guides/operators.md#after-a-restore says it in full.`;

async function run(): Promise<number> {
  const { again } = readArguments(COMMAND, { options: { again: { type: 'boolean', default: false } } }).values;
  const config = readConfig(process.env, { command: true });
  const { databaseUrl } = config;
  if (!databaseUrl) throw new Error('Set DATABASE_URL to the address of the owner of the database.');
  const owner = new Database(databaseUrl, { size: 2, applicationName: 'erp restored' });
  try {
    const address = { variable: 'DATABASE_URL', url: databaseUrl };
    const { rows: settings } = await explained(owner.query<{ readOnly: boolean }>(READ_ONLY), address);
    if (settings[0]?.readOnly) throw new Error(IS_READ_ONLY);
    for (const service of ALL_SERVICES) await explained(checkMigrated(owner, service), address);
    let [begun, kept, failed] = [0, 0, 0];
    failed += await upgradeTenantsAloud(owner, console);
    const { rows } = await explained(owner.query<{ id: string; key: string }>(TENANTS), address);
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
    console.log(`Those who follow changes of ${begun} of ${rows.length} tenants start over.`);
    if (kept > 0)
      console.log(`${kept} began anew since the server was started, and are left as they are (--again: these, too).`);
    await warnOfLostPasswords(owner, config, ALL_SERVICES, console.log);
    if (failed > 0) {
      console.error('It is not done for all of them: put right what is said above, and run it again.');
      return 1;
    }
    console.log(`\n${NEXT}`);
    return 0;
  } finally {
    await owner.close();
  }
}

try {
  process.exitCode = await run();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = COMMAND.exitCode;
}
