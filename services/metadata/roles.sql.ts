/** Statements about the two roles of a tenant. Source: docs/decisions/roles-of-a-transaction.md. */
import { ownerRole, tenantRole } from '../../mixins/database/roles.ts';

/**
 * True when an older version of the platform created objects in a tenant's schema, which then belong to the login
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
