/**
 * The PostgreSQL roles that work runs as: the second lock against crossing tenants. Each sees what its part of the work
 * needs and nothing of another tenant. Source: docs/decisions/roles-of-a-transaction.md.
 */
import { tenantSchema } from '../../lib/context.ts';
import { identifier } from '../../lib/values/sql-text.ts';

export interface Role {
  readonly name: string;
  /** Quoted schema of the tenant whose tables the role may use; empty for a service's role. */
  readonly schema: string;
  /** Statements that make a transaction act as the role. */
  readonly enter: string;
}

const roleOf = (name: string, schema: string, more = ''): Role => ({
  name,
  schema,
  enter: `SET LOCAL ROLE ${identifier(name)}${more}`,
});

/** The login of the service itself. */
export const LOGIN: Role = { name: 'none', schema: '', enter: 'SET LOCAL ROLE NONE' };

/** Reads and writes the tenant's records; may not change a table's definition. */
export function tenantRole(tenantId: string): Role {
  const name = tenantSchema(tenantId);
  return roleOf(name, identifier(name));
}

/** Owns the tenant's schema and everything in it: the role of DDL. */
export function ownerRole(tenantId: string): Role {
  const schema = tenantSchema(tenantId);
  return roleOf(`${schema}_owner`, identifier(schema));
}

/**
 * Works on the shared tables of a service, where row-level security shows the rows of `tenantId` only; null: of no
 * tenant.
 */
export function serviceRole(service: string, tenantId: string | null): Role {
  if (!/^[a-z]+$/.test(service)) throw new Error(`The name of a service has letters only: ${service}`);
  if (tenantId !== null) tenantSchema(tenantId); // asserts the form before it becomes part of a statement
  // A SET statement, not set_config(): a distributed database passes only the statement on to its workers.
  return roleOf(`svc_${service}`, '', `; SET LOCAL app.tenant_id = '${tenantId ?? ''}'`);
}
