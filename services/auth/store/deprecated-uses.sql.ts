/** Statements on the use of operations that are going to be gone. */
import { DEPRECATED_USE_DAYS, type DeprecatedUse } from '../../../contracts/auth.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

/** Adds what was counted to the rows of its days. */
export function addUses(tenantId: string, uses: readonly DeprecatedUse[]): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  const column = (of: (use: DeprecatedUse) => string | number, type: string): string => sql.bind(uses.map(of), type);
  return sql.statement(
    `INSERT INTO auth.deprecated_uses AS stored (tenant_id, operation_id, client_id, day, requests, last_used_at)
     SELECT ${tenant}, operation_id, client_id, (last_used_at AT TIME ZONE 'UTC')::date, sum(requests), max(last_used_at)
     FROM unnest(${column(({ operationId }) => operationId, 'text[]')}, ${column(({ clientId }) => clientId, 'text[]')},
       ${column(({ requests }) => requests, 'bigint[]')}, ${column(({ lastUsedAt }) => lastUsedAt, 'timestamptz[]')})
       AS used (operation_id, client_id, requests, last_used_at)
     GROUP BY 2, 3, 4 ORDER BY 2, 3, 4
     ON CONFLICT (tenant_id, operation_id, client_id, day) DO UPDATE SET
       requests = stored.requests + excluded.requests,
       last_used_at = greatest(stored.last_used_at, excluded.last_used_at)`,
  );
}

export interface UseRow {
  operationId: string;
  clientId: string;
  requests: number;
  lastUsedAt: string;
}

/** The clients of the last days, those that were there last first. */
export function usesOfTenant(tenantId: string, operationIds: readonly string[], limit: number): Statement {
  const sql = new Sql();
  return sql.statement(
    `SELECT operation_id AS "operationId", client_id AS "clientId", sum(requests)::float8 AS requests,
       to_json(max(last_used_at)) #>> '{}' AS "lastUsedAt"
     FROM auth.deprecated_uses
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND operation_id = ANY(${sql.bind(operationIds, 'text[]')})
       AND day > current_date - ${sql.bind(DEPRECATED_USE_DAYS, 'integer')}
     GROUP BY 1, 2 ORDER BY max(last_used_at) DESC, 1, 2 LIMIT ${sql.bind(limit, 'integer')}`,
  );
}
