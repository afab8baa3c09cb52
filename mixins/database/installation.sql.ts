/**
 * Statements about what an installation remembers of itself. The first ones are the owner's, the others the services'.
 */
import { identifier, literal } from '../../lib/values/sql-text.ts';
import type { Statement } from './statement.ts';

export const INSTALL = `DO $$ BEGIN
  IF to_regclass('platform.installation') IS NULL THEN
    CREATE SCHEMA IF NOT EXISTS platform;
    CREATE TABLE platform.installation (
      property text PRIMARY KEY,
      value text NOT NULL,
      set_at timestamptz NOT NULL DEFAULT now());
  END IF;
END $$`;

/** A login may read everything and add what is not there; `change`: it may set something else as well. */
export const letUseSql = (login: string, change: boolean): string => `DO $$ BEGIN
  IF NOT has_table_privilege(${literal(login)}, 'platform.installation', ${literal(change ? 'UPDATE' : 'INSERT')}) THEN
    GRANT USAGE ON SCHEMA platform TO ${identifier(login)};
    GRANT SELECT, INSERT${change ? ', UPDATE' : ''} ON platform.installation TO ${identifier(login)};
  END IF;
END $$`;

/** Asks the catalogue, because an account may not use the schema. */
export const IS_INSTALLED: Statement = {
  text: `SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'platform' AND tablename = 'installation') AS yes`,
};

export const propertySql = (property: string): Statement => ({
  text: 'SELECT value FROM platform.installation WHERE property = $1',
  values: [property],
});

export const addPropertySql = (property: string, value: string): Statement => ({
  text: 'INSERT INTO platform.installation (property, value) VALUES ($1, $2) ON CONFLICT (property) DO NOTHING',
  values: [property, value],
});

export const setPropertySql = (property: string, value: string): Statement => ({
  text: `INSERT INTO platform.installation (property, value) VALUES ($1, $2)
    ON CONFLICT (property) DO UPDATE SET value = excluded.value, set_at = now()`,
  values: [property, value],
});
