/** Statements about the login roles of services; the owner of the database runs them. */
import { identifier, literal } from '../../lib/values/sql-text.ts';
import type { Statement } from './statement.ts';

/**
 * Comment on a login to which no operator has given a password: it has none, or one that is derived from the owner's.
 * Of a login without it the password is in use somewhere, and only its operator replaces it.
 */
const DERIVED = 'The password is derived from that of the owner, until an operator gives another.';

export const markDerivedSql = (login: string, derived: boolean): string =>
  `COMMENT ON ROLE ${identifier(login)} IS ${derived ? literal(DERIVED) : 'NULL'}`;

export const isDerived = (login: string): Statement => ({
  text: `SELECT shobj_description(oid, 'pg_authid') = $1 IS TRUE AS yes FROM pg_roles WHERE rolname = $2`,
  values: [DERIVED, login],
});

/** A login that the processes give a password themselves lacks one until the first of them starts. */
export const hasLostPassword = (login: string): Statement => ({
  text: `SELECT EXISTS (SELECT FROM pg_authid WHERE rolname = $2 AND rolpassword IS NULL
      AND shobj_description(oid, 'pg_authid') IS DISTINCT FROM $1) AS yes`,
  values: [DERIVED, login],
});

export const MAY_READ_PASSWORDS: Statement = {
  text: `SELECT has_table_privilege('pg_authid', 'SELECT') AS yes`,
};

/** Roles belong to the whole server: another installation on it may have made this one. */
export const createLoginSql = (login: string): string => `DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = ${literal(login)}) THEN
    CREATE ROLE ${identifier(login)} LOGIN NOINHERIT;
    ${markDerivedSql(login, true)};
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$`;

/**
 * Revokes from every login: temporary tables, large objects, and objects in the public schema, which every role
 * searches. On a managed server the part that needs a superuser is left as it is.
 */
export const CLOSE_DATABASE = `DO $$
DECLARE
  routine regprocedure;
BEGIN
  IF has_database_privilege('public', current_database(), 'TEMPORARY') THEN
    EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
  END IF;
  IF has_schema_privilege('public', 'public', 'CREATE') THEN
    REVOKE CREATE ON SCHEMA public FROM PUBLIC;
  END IF;
  FOR routine IN SELECT oid FROM pg_proc
    WHERE pronamespace = 'pg_catalog'::regnamespace AND proname ~ '^(lo_|loread$|lowrite$)'
      AND has_function_privilege('public', oid, 'EXECUTE')
      AND (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
  LOOP
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', routine);
  END LOOP;
END $$`;

/** Lets a login connect, and enter these roles. */
export const enterSql = (login: string, roles: readonly string[]): string => `DO $$
DECLARE
  entered name;
BEGIN
  IF NOT has_database_privilege(${literal(login)}, current_database(), 'CONNECT') THEN
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), ${literal(login)});
  END IF;
  FOR entered IN SELECT role.rolname FROM pg_roles role, pg_roles login
    WHERE role.rolname = ANY (${literal(`{${roles.join(',')}}`)}::name[]) AND login.rolname = ${literal(login)}
      AND NOT EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = role.oid AND m.member = login.oid)
  LOOP
    BEGIN
      EXECUTE format('GRANT %I TO %I', entered, ${literal(login)});
    EXCEPTION WHEN unique_violation THEN NULL;
    END;
  END LOOP;
END $$`;

/**
 * Lets a login work on the tables of a schema without entering a role. Rows under row-level security stay hidden, but
 * for those of tables whose policy \`directory\` lets the owner look across tenants.
 */
export const useSchemaSql = (login: string, schema: string): string => `DO $$
DECLARE
  found record;
BEGIN
  IF to_regnamespace(${literal(schema)}) IS NULL THEN RETURN; END IF;
  GRANT USAGE ON SCHEMA ${identifier(schema)} TO ${identifier(login)};
  FOR found IN SELECT oid, oid::regclass AS name, relname, relkind FROM pg_class
    WHERE relnamespace = ${literal(schema)}::regnamespace AND relkind IN ('r', 'p', 'S')
  LOOP
    IF found.relkind = 'S' THEN
      IF NOT has_sequence_privilege(${literal(login)}, found.oid, 'USAGE') THEN
        EXECUTE format('GRANT USAGE, SELECT ON SEQUENCE %s TO %I', found.name, ${literal(login)});
      END IF;
    ELSIF found.relname = 'migrations' THEN
      EXECUTE format('GRANT SELECT ON %s TO %I', found.name, ${literal(login)});
    ELSIF NOT has_table_privilege(${literal(login)}, found.oid, 'DELETE') THEN
      EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON %s TO %I', found.name, ${literal(login)});
    END IF;
  END LOOP;
  FOR found IN SELECT tablename AS name FROM pg_policies policy
    WHERE schemaname = ${literal(schema)} AND policyname = 'directory' AND NOT EXISTS (
      SELECT FROM pg_policies other WHERE other.schemaname = policy.schemaname
        AND other.tablename = policy.tablename AND other.policyname = 'directory_of_login')
  LOOP
    EXECUTE format('CREATE POLICY directory_of_login ON %I.%I TO %I USING (true) WITH CHECK (true)',
      ${literal(schema)}, found.name, ${literal(login)});
  END LOOP;
END $$`;

/** The logins that enter the roles of tenants. Logins of services that this version does not know stay. */
export const actOnTenantsSql = (logins: readonly { readonly login: string; readonly asOwner: boolean }[]): string => `
CREATE SCHEMA IF NOT EXISTS platform;
CREATE TABLE IF NOT EXISTS platform.tenant_logins (
  login text PRIMARY KEY,
  as_owner boolean NOT NULL);
INSERT INTO platform.tenant_logins AS known (login, as_owner)
  VALUES ${logins.map(({ login, asOwner }) => `(${literal(login)}, ${asOwner})`).join(', ')}
  ON CONFLICT (login) DO UPDATE SET as_owner = excluded.as_owner WHERE known.as_owner <> excluded.as_owner`;

/** Lets the logins enter the roles of all tenants that are there. */
export const ENTER_TENANTS = `DO $$
DECLARE
  tenant uuid;
BEGIN
  IF to_regproc('metadata.ensure_tenant_roles') IS NULL THEN RETURN; END IF;
  FOR tenant IN SELECT t.id FROM metadata.tenants t
    JOIN pg_roles records ON records.rolname = 't_' || replace(t.id::text, '-', '')
    WHERE EXISTS (SELECT FROM platform.tenant_logins acting JOIN pg_roles login ON login.rolname = acting.login
      WHERE NOT EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = records.oid AND m.member = login.oid))
  LOOP
    PERFORM metadata.ensure_tenant_roles(tenant);
  END LOOP;
END $$`;

/** The SCRAM verifier instead of the password, which would stand in the server's log. */
export const setPasswordSql = (login: string, verifier: string): string =>
  `ALTER ROLE ${identifier(login)} PASSWORD ${literal(verifier)}`;

export const callSql = (login: string, routines: readonly string[]): string =>
  `GRANT EXECUTE ON FUNCTION ${routines.join(', ')} TO ${identifier(login)}`;

/** Lets a role call a function, such as `auth.end_grant(uuid, uuid, text)`, as soon as both are there. */
export const roleCallSql = (role: string, routine: string): string => `DO $$ BEGIN
  IF to_regrole(${literal(role)}) IS NULL OR to_regprocedure(${literal(routine)}) IS NULL THEN RETURN; END IF;
  IF NOT has_function_privilege(${literal(role)}, ${literal(routine)}, 'EXECUTE') THEN
    GRANT USAGE ON SCHEMA ${identifier(routine.slice(0, routine.indexOf('.')))} TO ${identifier(role)};
    GRANT EXECUTE ON FUNCTION ${routine} TO ${identifier(role)};
  END IF;
END $$`;

/** True when this account may create roles: then it is the owner, not a service's login. */
export const MAY_CREATE_ROLES: Statement = {
  text: 'SELECT rolsuper OR rolcreaterole AS yes FROM pg_roles WHERE rolname = current_user',
};
