/** Statements about the open deployments of all tenants. The login of the service looks across tenants. */
import type { DeploymentStatus } from '../../../contracts/metadata.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

export const OPEN = "('QUEUED', 'VALIDATING', 'APPLYING', 'CANCELING')";

/**
 * No worker holds the deployment. What a look finds so can be claimed, or it would be found for ever. A lease that ends
 * later than any worker asks for is from before the clock of the database was set back, and no worker may renew it.
 */
export const UNHELD = `coalesce(lease_until, '-infinity') NOT BETWEEN now() AND now() + interval '10 min'`;

/** The first open deployment of each tenant, which the others of it wait for. */
const FIRST = `SELECT DISTINCT ON (tenant_id) tenant_id, queue_number, created_at, lease_until
  FROM metadata.deployments WHERE status IN ${OPEN} ORDER BY tenant_id, queue_number`;

/**
 * Tenants whose first open deployment no worker holds: it waits, or its worker was lost. `left`: those that are not
 * asked for. A tenant stands where its deployment was accepted or the one before it has ended, whichever came later: one
 * with a long queue comes after one with a short queue, and none waits for ever. Those of a suspended tenant wait until
 * it is resumed.
 */
export function dueTenantsStatement(left: readonly string[], take: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT first.tenant_id AS "tenantId" FROM (${FIRST}) first
    WHERE ${UNHELD}
      AND EXISTS (SELECT FROM metadata.tenants tenant WHERE tenant.id = first.tenant_id AND NOT tenant.suspended)
      AND first.tenant_id <> ALL (${sql.bind(left, 'uuid[]')})
    ORDER BY greatest(first.created_at, (
      SELECT before.finished_at FROM metadata.deployments before
      WHERE before.tenant_id = first.tenant_id AND before.queue_number < first.queue_number
      ORDER BY before.queue_number DESC LIMIT 1)), first.tenant_id
    LIMIT ${sql.bind(take, 'integer')}`,
  );
}

/** The oldest first; `tenantId` null: of all tenants. */
export function openDeploymentsStatement(tenantId: string | null, take: number): Statement {
  const sql = new Sql();
  const ofTenant = tenantId === null ? '' : `AND tenant_id = ${sql.bind(tenantId, 'uuid')}`;
  return sql.statement(
    `SELECT tenant_id AS "tenantId", deployment_id AS "deploymentId", status, kind, created_by_user_id AS "userId",
      created_by_client_id AS "clientId", created_at AS "createdAt", started_at AS "startedAt", takes, done, total
    FROM metadata.deployments WHERE status IN ${OPEN} ${ofTenant}
    ORDER BY queue_number LIMIT ${sql.bind(take, 'integer')}`,
  );
}

/** Of all tenants. */
export interface Numbers {
  readonly queued: number;
  readonly running: number;
  readonly oldestSeconds: number;
}

export const numbersStatement = (): Statement => ({
  text: `SELECT count(*) FILTER (WHERE status = 'QUEUED')::integer AS queued,
      count(*) FILTER (WHERE status <> 'QUEUED')::integer AS running,
      coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8 AS "oldestSeconds"
    FROM metadata.deployments WHERE status IN ${OPEN}`,
});

/** How a deployment has ended; no row: it has not. */
export interface EndRow {
  readonly status: DeploymentStatus;
  readonly code: string | null;
  readonly seconds: number;
}

export function endStatement(tenantId: string, deploymentId: string): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT status, error ->> 'code' AS code, extract(epoch FROM finished_at - created_at)::float8 AS seconds
    FROM metadata.deployments
    WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND deployment_id = ${sql.bind(deploymentId, 'uuid')}
      AND finished_at IS NOT NULL`,
  );
}
