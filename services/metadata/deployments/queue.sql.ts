/** Statements about the open deployments of all tenants. The login of the service looks across tenants. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

export const OPEN = "('QUEUED', 'VALIDATING', 'APPLYING', 'CANCELING')";

/** The first open deployment of each tenant, which the others of it wait for. */
const FIRST = `SELECT DISTINCT ON (tenant_id) tenant_id, queue_number, created_at, lease_until
  FROM metadata.deployments WHERE status IN ${OPEN} ORDER BY tenant_id, queue_number`;

/**
 * Tenants whose first open deployment no worker holds: it waits, or its worker was lost. `left`: those that are not
 * asked for. A tenant stands where its deployment was accepted or the one before it has ended, whichever came later: one
 * with a long queue comes after one with a short queue, and nobody waits for ever.
 */
export function dueTenantsStatement(left: readonly string[], take: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT first.tenant_id AS "tenantId" FROM (${FIRST}) first
    WHERE coalesce(first.lease_until, '-infinity') < now()
      AND first.tenant_id <> ALL (${sql.bind(left, 'uuid[]')})
    ORDER BY greatest(first.created_at, (
      SELECT before.finished_at FROM metadata.deployments before
      WHERE before.tenant_id = first.tenant_id AND before.queue_number < first.queue_number
      ORDER BY before.queue_number DESC LIMIT 1)), first.tenant_id
    LIMIT ${sql.bind(take, 'integer')}`,
  );
}
