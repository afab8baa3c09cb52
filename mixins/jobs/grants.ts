/** The right to enqueue for the PostgreSQL roles of services: nothing else of pg-boss is visible to them. */
import { identifier } from '../../lib/values/sql-text.ts';
import type { Database } from '../database/database.ts';

/** Two processes that grant on one table at the same moment would disturb each other. */
const LOCK = 7_164_003;

/** Lets the roles of these services enqueue in their own transactions; services without tables have no role. */
export async function grantEnqueueing(database: Database, services: readonly string[]): Promise<void> {
  const roles = services.map((service) => `svc_${service}`);
  await database.transaction(async (tx) => {
    await tx.query('SET LOCAL lock_timeout = 0');
    await tx.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
    const lacking = await tx.all<{ rolname: string }>({
      text: `SELECT rolname FROM pg_roles WHERE rolname = ANY($1)
        AND NOT has_table_privilege(oid, 'pgboss.job_common', 'INSERT')`,
      values: [roles],
    });
    for (const { rolname } of lacking) {
      const role = identifier(rolname);
      await tx.query(`GRANT USAGE ON SCHEMA pgboss TO ${role}`);
      await tx.query(`GRANT SELECT ON pgboss.queue TO ${role}`);
      // The id is what an insert returns; payloads stay invisible.
      await tx.query(`GRANT INSERT, SELECT (id) ON pgboss.job_common TO ${role}`);
    }
  });
}
