/**
 * Forward-only, numbered SQL files of one service, applied in order inside one transaction each, under an advisory
 * lock so that any number of processes may start at once.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { messageOf } from '../../lib/errors/thrown.ts';
import type { Database, Tx } from './database.ts';

const LOCK = 7_164_001;

/** Roles and databases belong to the whole server, the lock to one database of it: another installation changes them, too. */
const ATTEMPTS = 5;

/**
 * A transaction of one process at a time: PostgreSQL refuses catalog rows that two change at once ("concurrently
 * updated"). When they were changed from outside this database, the work is repeated from its beginning.
 */
export async function oneByOne<T>(database: Database, work: (tx: Tx) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++)
    try {
      return await database.transaction(async (tx) => {
        await tx.query('SET LOCAL lock_timeout = 0');
        await tx.query('SET LOCAL statement_timeout = 0');
        await tx.query(`SELECT pg_advisory_xact_lock(${LOCK})`);
        return await work(tx);
      });
    } catch (error) {
      if (attempt === ATTEMPTS || !/^tuple concurrently (updated|deleted)$/.test(messageOf(error))) throw error;
      await pause(20 * attempt);
    }
}

/** Applies the files that the database lacks; returns their names. */
export async function migrate(database: Database, service: string, directory: string): Promise<string[]> {
  return oneByOne(database, async (tx) => {
    await tx.query(`CREATE SCHEMA IF NOT EXISTS ${service}`);
    await tx.query(
      `CREATE TABLE IF NOT EXISTS ${service}.migrations (
        name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`,
    );
    const { rows } = await tx.query<{ name: string }>(`SELECT name FROM ${service}.migrations`);
    const applied = new Set(rows.map(({ name }) => name));
    const missing = (await readdir(directory)).filter((file) => file.endsWith('.sql') && !applied.has(file)).sort();
    for (const name of missing) {
      await tx.query(await readFile(join(directory, name), 'utf8'));
      await tx.query(`INSERT INTO ${service}.migrations (name) VALUES ($1)`, [name]);
    }
    return missing;
  });
}

/** Role of a service on its shared tables; row-level security binds it to one tenant per transaction. */
export function ensureServiceRole(database: Database, service: string): Promise<void> {
  return oneByOne(database, async (tx) => {
    await tx.query(`DO $$ BEGIN
      IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'svc_${service}') THEN CREATE ROLE svc_${service} NOLOGIN; END IF;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`);
    await tx.query(
      `DO $$ BEGIN EXECUTE format('GRANT svc_${service} TO %I', current_user); EXCEPTION WHEN OTHERS THEN NULL; END $$`,
    );
    // Roles belong to the whole server: another installation on it, with another user, may have created this one.
    const { member } = await tx.one<{ member: boolean }>({
      text: "SELECT pg_has_role(current_user, $1, 'MEMBER') AS member",
      values: [`svc_${service}`],
    });
    if (!member)
      throw new Error(
        `The database user is not a member of the role svc_${service}, which another user owns: ` +
          'grant it to this user, or use a dedicated PostgreSQL server.',
      );
    await tx.query(`GRANT USAGE ON SCHEMA ${service} TO svc_${service}`);
    await tx.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${service} TO svc_${service}`);
    await tx.query(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${service} TO svc_${service}`);
  });
}
