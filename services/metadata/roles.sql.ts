/**
 * Statements about the two roles of a tenant; the login role runs them.
 * Source: docs/decisions/roles-of-a-transaction.md.
 */
import { ownerRole, tenantRole } from '../../mixins/database/roles.ts';

/**
 * Roles belong to the whole server: a copy of this database on it may have made this one. It may log in, because the
 * workers of a distributed database are entered as that role, and has no password.
 */
export const createRoleSql = (name: string): string => `DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${name}') THEN
    CREATE ROLE ${name} LOGIN NOINHERIT;
    GRANT ${name} TO CURRENT_USER;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$`;

/**
 * Whether an older version of the platform made something in the schema of a tenant, which then belongs to the login
 * role, or the tenant itself, which then has no owner role. pg_depend finds what a schema holds by an index.
 */
export function heldByOthersSql(tenantId: string): string {
  const schema = tenantRole(tenantId).name;
  const owner = ownerRole(tenantId).name;
  return `EXISTS (
    SELECT FROM pg_depend held
      LEFT JOIN pg_class relation
        ON held.classid = 'pg_class'::regclass AND relation.oid = held.objid AND relation.relkind = 'r'
      LEFT JOIN pg_proc routine ON held.classid = 'pg_proc'::regclass AND routine.oid = held.objid
    WHERE held.refclassid = 'pg_namespace'::regclass AND held.refobjid = '${schema}'::regnamespace
      AND coalesce(relation.relowner, routine.proowner) <> coalesce(to_regrole('${owner}')::oid, 0))`;
}

/** Gives a schema that the login role made to the tenant's owner role, with everything in it; privileges stay. */
export function giveToOwnerSql(tenantId: string): string {
  const schema = tenantRole(tenantId).name;
  const owner = ownerRole(tenantId).name;
  return `${createRoleSql(owner)};
DO $$
DECLARE
  found record;
BEGIN
  ALTER SCHEMA ${schema} OWNER TO ${owner};
  FOR found IN SELECT oid::regclass AS name FROM pg_class
    WHERE relnamespace = '${schema}'::regnamespace AND relkind = 'r' AND relowner <> '${owner}'::regrole
  LOOP
    EXECUTE format('ALTER TABLE %s OWNER TO ${owner}', found.name);
  END LOOP;
  FOR found IN SELECT oid::regprocedure AS name FROM pg_proc
    WHERE pronamespace = '${schema}'::regnamespace AND proowner <> '${owner}'::regrole
  LOOP
    EXECUTE format('ALTER FUNCTION %s OWNER TO ${owner}', found.name);
  END LOOP;
END $$`;
}
