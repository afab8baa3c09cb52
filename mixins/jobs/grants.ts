/** The right to enqueue for the PostgreSQL roles of services: nothing else of pg-boss is visible to them. */
import { identifier } from '../../lib/values/sql-text.ts';
import type { Database } from '../database/database.ts';
import { oneByOne } from '../database/migrate.ts';

/**
 * Lets the roles of these services enqueue in their own transactions; services without tables have no role. Processes
 * that start together grant on these tables one by one, also to the logins of services.
 */
export async function grantEnqueueing(database: Database, services: readonly string[]): Promise<void> {
  const roles = services.map((service) => `svc_${service}`);
  await oneByOne(database, async (tx) => {
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
