/**
 * Forward-only, numbered SQL files of one service, applied in order inside one transaction each, under an advisory
 * lock so that any number of processes may start at once.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Umzug } from 'umzug';
import { type Database, sqlState } from './database.ts';

const LOCK = 7_164_001;

export async function migrate(database: Database, service: string, directory: string): Promise<string[]> {
  await database.query(`CREATE SCHEMA IF NOT EXISTS ${service}`).catch(async (error) => {
    // Two processes created the same schema at once; the other one succeeded.
    if (!['23505', '42P06'].includes(sqlState(error) ?? '')) throw error;
  });
  return database.transaction(async (tx) => {
    await tx.query('SET LOCAL lock_timeout = 0');
    await tx.query('SET LOCAL statement_timeout = 0');
    await tx.query(`SELECT pg_advisory_xact_lock(${LOCK})`);
    await tx.query(
      `CREATE TABLE IF NOT EXISTS ${service}.migrations (
        name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`,
    );
    const umzug = new Umzug({
      migrations: {
        glob: ['*.sql', { cwd: directory }],
        resolve: ({ name }) => ({
          name,
          up: async () => {
            await tx.query(await readFile(join(directory, name), 'utf8'));
          },
        }),
      },
      storage: {
        logMigration: async ({ name }) => {
          await tx.query(`INSERT INTO ${service}.migrations (name) VALUES ($1)`, [name]);
        },
        unlogMigration: async () => {
          throw new Error('Migrations only go forward.');
        },
        executed: async () =>
          (await tx.query<{ name: string }>(`SELECT name FROM ${service}.migrations ORDER BY name`)).rows.map(
            (r) => r.name,
          ),
      },
      logger: undefined,
    });
    return (await umzug.up()).map((m) => m.name);
  });
}

/** Role of a service on its shared tables; row-level security binds it to one tenant per transaction. */
export async function ensureServiceRole(database: Database, service: string): Promise<void> {
  await database.query(`DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'svc_${service}') THEN CREATE ROLE svc_${service} NOLOGIN; END IF;
  EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`);
  await database.query(
    `DO $$ BEGIN EXECUTE format('GRANT svc_${service} TO %I', current_user); EXCEPTION WHEN OTHERS THEN NULL; END $$`,
  );
  // Roles belong to the whole server: another installation on it, with another user, may have created this one.
  const { rows } = await database.query<{ member: boolean }>(
    "SELECT pg_has_role(current_user, $1, 'MEMBER') AS member",
    [`svc_${service}`],
  );
  if (!rows[0]?.member)
    throw new Error(
      `The database user is not a member of the role svc_${service}, which another user owns: ` +
        'grant it to this user, or use a dedicated PostgreSQL server.',
    );
  await database.query(`GRANT USAGE ON SCHEMA ${service} TO svc_${service}`);
  await database.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${service} TO svc_${service}`);
  await database.query(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${service} TO svc_${service}`);
}
