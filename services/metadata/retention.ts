/**
 * Removes deleted components after their retention: with an object its table and what is kept about its records, with a
 * field its column. Then their names are free. Doing it twice does no harm. Source:
 * docs/reference/metadata.md#deleted-objects-and-fields.
 */
import { allTenants } from '../../contracts/tenants.ts';
import { tenantSchema } from '../../lib/context.ts';
import { identifier } from '../../lib/values/sql-text.ts';
import type { Database, Tx } from '../../mixins/database/database.ts';
import { ownerRole, serviceRole } from '../../mixins/database/roles.ts';
import { periodicQueue } from '../../mixins/jobs/queue.ts';
import { repeatForTenants } from '../../mixins/jobs/tenants.ts';
import { warnOf } from '../../mixins/log-failure.ts';
import type { Platform } from '../../mixins/platform.ts';
import { holdTables } from './deployments/ahead.ts';
import { dropSql } from './physical/retained.ts';
import { expiredTablesSql, forgetExpiredSql, forgetRowsSql, forgetTableSql } from './retention.sql.ts';
import { DDL_LIMITS, inConfiguration, lockConfiguration, requireCurrentSchema } from './tenants.ts';

const RETENTION = periodicQueue('metadata.retention', { everySeconds: 3_600, pollSeconds: 60, firstAfterSeconds: 60 });

/** Tables and columns that one round removes of a tenant, each in a transaction of its own. */
const TABLES_MAX = 100;
/** Rows deleted in one transaction. */
const ROWS = 5_000;
/** Companions of records beside their table. Audit trail and history are sealed together and kept for as long as they say. */
const COMPANIONS = ['_recycle_bin', '_shares', '_revoked_shares'];

/** Answers how many tables and columns were removed. */
export async function purgeDeleted(database: Database, tenantId: string, signal?: AbortSignal): Promise<number> {
  const expired = await database.shared('metadata', tenantId, async (tx) => {
    await tx.query(forgetExpiredSql(tenantId));
    return tx.all<{ type: string; fullName: string }>(expiredTablesSql(tenantId, TABLES_MAX));
  });
  const schema = identifier(tenantSchema(tenantId));
  const purge = async (component: { type: string; fullName: string }): Promise<number> => {
    if (component.type === 'CustomObject') await forgetRows(database, tenantId, component.fullName);
    return inConfiguration(database, tenantId, async (tx) => {
      await requireCurrentSchema(tx, tenantId);
      await holdTable(tx, tenantId, component);
      await tx.query(DDL_LIMITS);
      await lockConfiguration(tx, tenantId);
      tx.actAs(serviceRole('metadata', tenantId));
      // A rollback may have brought it back meanwhile.
      const { count } = await tx.one<{ count: number }>(forgetTableSql(tenantId, component));
      if (count === 0) return 0;
      tx.actAs(ownerRole(tenantId));
      await tx.query(dropSql(schema, component));
      return 1;
    });
  };
  let removed = 0;
  const failures: unknown[] = [];
  for (const component of expired) {
    if (signal?.aborted) break;
    try {
      removed += await purge(component);
    } catch (error) {
      // A failure of one does not stop the others.
      failures.push(error);
    }
  }
  if (failures.length > 0)
    throw new AggregateError(failures, `${failures.length} of ${expired.length} deleted components were not removed.`);
  return removed;
}

/** The lock of a table goes before that of the configuration, as for deployments; an object may be gone with its table. */
async function holdTable(tx: Tx, tenantId: string, { fullName }: { fullName: string }): Promise<void> {
  const [table = ''] = fullName.split('.');
  tx.actAs(ownerRole(tenantId));
  const { isThere } = await tx.one<{ isThere: boolean }>({
    text: 'SELECT to_regclass($1) IS NOT NULL AS "isThere"',
    values: [`${tx.schema}.${identifier(table)}`],
  });
  if (isThere) await holdTables(tx, tenantId, [table]);
}

async function forgetRows(database: Database, tenantId: string, object: string): Promise<void> {
  const schema = identifier(tenantSchema(tenantId));
  for (const companion of COMPANIONS)
    for (let count = ROWS; count === ROWS; )
      count = await database.shared('metadata', tenantId, async (tx) => {
        await tx.query(DDL_LIMITS);
        tx.actAs(ownerRole(tenantId));
        return (await tx.one<{ count: number }>(forgetRowsSql(schema, companion, object, ROWS))).count;
      });
}

/** Offers to do it in this process, for every tenant again and again. */
export function purgePeriodically({ database, jobs, broker, log }: Platform): Promise<void> {
  return repeatForTenants(jobs, {
    queue: RETENTION,
    alsoSuspended: false,
    tenants: allTenants(broker),
    work: (tenantId, signal) => purgeDeleted(database, tenantId, signal),
    failed: (tenantId, error) =>
      warnOf(log, error, 'Deleted configuration was not removed; the next round tries again.', { tenantId }),
  });
}
