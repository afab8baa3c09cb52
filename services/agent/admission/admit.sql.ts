/** Statements of the admission of a call. */
import { LIMITS } from '../../../config/limits.ts';
import type { Admission } from '../../../contracts/agent.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

/** A call and whose it is. */
export interface Call {
  readonly request: RequestContext;
  readonly call: Admission;
}

/** A call with the id of its step. */
export interface AdmittedCall extends Call {
  readonly stepId: string;
}

/** Whether the same mutation was admitted before under the same key. */
const admittedBefore = ({ bind }: Sql, { request, call }: Call): string =>
  `EXISTS (SELECT FROM agent.steps s WHERE s.tenant_id = ${bind(request.tenantId, 'uuid')}
        AND s.run_id = ${bind(call.runId, 'uuid')} AND s.mutation
        AND s.idempotency_key = ${bind(call.idempotencyKey, 'text')}
        AND s.fingerprint = ${bind(call.fingerprint, 'text')} AND s.cost > 0)`;

/**
 * Counts the call and stores its step, if the run is active and its budget has room: one row with `dryRun`, or none. A
 * mutation that was admitted before under the same key counts as a request only, for it is executed once.
 */
export function countStatement({ request, call, stepId }: AdmittedCall, approvalId: string | null): Statement {
  const sql = new Sql();
  const { bind } = sql;
  const tenant = bind(request.tenantId, 'uuid');
  const run = bind(call.runId, 'uuid');
  const cost = bind(call.cost, 'integer');
  const repeated = call.mutation ? admittedBefore(sql, { request, call }) : 'false';
  return sql.statement(
    `WITH charge AS MATERIALIZED (
      SELECT CASE WHEN repeated THEN 0 ELSE ${cost} END AS cost,
        CASE WHEN repeated THEN 0 ELSE ${call.mutation ? 1 : 0} END AS mutations
      FROM (SELECT ${repeated} AS repeated) asked),
    counted AS (
      UPDATE agent.runs r SET cost = r.cost + charge.cost, requests = r.requests + 1,
        mutations = r.mutations + charge.mutations
      FROM charge
      WHERE r.tenant_id = ${tenant} AND r.run_id = ${run} AND r.user_id = ${bind(request.userId, 'uuid')}
        AND r.client_id = ${bind(request.clientId, 'text')}
        AND r.status = 'RUNNING' AND r.expires_at > clock_timestamp()
        AND r.requests < ${bind(LIMITS.agent_requests_of_run_max, 'integer')}
        AND r.cost + charge.cost <= r.max_cost AND r.mutations + charge.mutations <= r.max_mutations
        AND (charge.mutations = 0 OR r.records_changed < r.max_records)
      RETURNING r.dry_run, charge.cost)
    INSERT INTO agent.steps (tenant_id, step_id, run_id, operation_id, method, path, mutation, cost, request_id,
      idempotency_key, fingerprint, approval_id)
    SELECT ${tenant}, ${bind(stepId, 'uuid')}, ${run}, ${bind(call.operationId, 'text')}, ${bind(call.method, 'text')},
      ${bind(call.path, 'text')}, ${bind(call.mutation, 'boolean')}, counted.cost, ${bind(request.requestId, 'text')},
      ${bind(call.idempotencyKey, 'text')}, ${bind(call.fingerprint, 'text')}, ${bind(approvalId, 'uuid')}
    FROM counted
    RETURNING (SELECT dry_run FROM counted) AS "dryRun"`,
  );
}

/** The step of a call that was not executed; it takes a request from the run, and no cost. */
export function refusedStepStatement(
  { request, call, stepId }: AdmittedCall,
  status: number,
  approvalId: string | null,
): Statement {
  const sql = new Sql();
  const { bind } = sql;
  const tenant = bind(request.tenantId, 'uuid');
  const run = bind(call.runId, 'uuid');
  return sql.statement(
    `WITH counted AS (
      UPDATE agent.runs SET requests = requests + 1 WHERE tenant_id = ${tenant} AND run_id = ${run} RETURNING 1)
    INSERT INTO agent.steps (tenant_id, step_id, run_id, operation_id, method, path, mutation, cost, request_id,
      idempotency_key, fingerprint, approval_id, status)
    SELECT ${tenant}, ${bind(stepId, 'uuid')}, ${run}, ${bind(call.operationId, 'text')}, ${bind(call.method, 'text')},
      ${bind(call.path, 'text')}, ${bind(call.mutation, 'boolean')}, 0, ${bind(request.requestId, 'text')},
      ${bind(call.idempotencyKey, 'text')}, ${bind(call.fingerprint, 'text')}, ${bind(approvalId, 'uuid')},
      ${bind(status, 'smallint')}
    FROM counted`,
  );
}

export function admittedBeforeStatement(call: Call): Statement {
  const sql = new Sql();
  return sql.statement(`SELECT ${admittedBefore(sql, call)} AS yes`);
}

/** The step of a call that was tried out and now waits for an approval. */
export function askedStepStatement({ request, stepId, call }: AdmittedCall, approvalId: string): Statement {
  const sql = new Sql();
  const { bind } = sql;
  return sql.statement(
    `UPDATE agent.steps SET status = 403, approval_id = ${bind(approvalId, 'uuid')}
    WHERE tenant_id = ${bind(request.tenantId, 'uuid')} AND step_id = ${bind(stepId, 'uuid')}
      AND run_id = ${bind(call.runId, 'uuid')}`,
  );
}

/** How an admitted call ended; what is known already stays. */
export function settleStatement(
  tenantId: string,
  stepId: string,
  status: number,
  approvalId: string | null,
): Statement {
  const sql = new Sql();
  const { bind } = sql;
  return sql.statement(
    `UPDATE agent.steps SET status = ${bind(status, 'smallint')},
      approval_id = coalesce(approval_id, ${bind(approvalId, 'uuid')})
    WHERE tenant_id = ${bind(tenantId, 'uuid')} AND step_id = ${bind(stepId, 'uuid')} AND status IS NULL`,
  );
}
