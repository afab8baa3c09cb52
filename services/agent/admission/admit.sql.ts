/** Statements of the admission of a call. */

import type { Admission } from '../../../contracts/agent.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import type { DayBudget } from '../policy/evaluate.ts';

/** A call and whose it is. */
export interface Call {
  readonly request: RequestContext;
  readonly call: Admission;
}

/** A call with the id of its step. */
export interface AdmittedCall extends Call {
  readonly stepId: string;
}

/** True when the same mutation was admitted before under the same key. */
const admittedBefore = ({ bind }: Sql, { request, call }: Call): string =>
  `EXISTS (SELECT FROM agent.steps s WHERE s.tenant_id = ${bind(request.tenantId, 'uuid')}
        AND s.run_id = ${bind(call.runId, 'uuid')} AND s.mutation
        AND s.idempotency_key = ${bind(call.idempotencyKey, 'text')}
        AND s.fingerprint = ${bind(call.fingerprint, 'text')} AND s.cost > 0)`;

/** True while a dry run of the same mutation under the same key is in progress. */
const beingTried = ({ bind }: Sql, { request, call }: Call): string =>
  `EXISTS (SELECT FROM agent.steps s WHERE s.tenant_id = ${bind(request.tenantId, 'uuid')}
        AND s.run_id = ${bind(call.runId, 'uuid')} AND NOT s.mutation
        AND s.idempotency_key = ${bind(call.idempotencyKey, 'text')}
        AND s.fingerprint = ${bind(call.fingerprint, 'text')} AND s.status IS NULL)`;

/** Mutations that a call takes from the budget. */
export const mutationsOf = ({ mutation, mutations = 1 }: Admission): number => (mutation ? mutations : 0);

/** A day is over 24 hours after its first call; the next call begins another. */
const DAY_OVER = `d.began_at <= clock_timestamp() - interval '24 hours'`;

/**
 * Counts the call in its run and in the day of user and client, and stores its step, if the run is active and both have
 * room: one row with `dryRun`, or none. A mutation that was admitted before under the same key counts as a request only,
 * for it is executed once; the run must be locked by then, so that calls at the same moment see each other.
 */
export function countStatement(
  { request, call, stepId }: AdmittedCall,
  approvalId: string | null,
  max: DayBudget,
): Statement {
  const sql = new Sql();
  const { bind } = sql;
  const tenant = bind(request.tenantId, 'uuid');
  const run = bind(call.runId, 'uuid');
  const user = bind(request.userId, 'uuid');
  const client = bind(request.clientId, 'text');
  const cost = bind(call.cost, 'integer');
  const [maxCost, maxMutations, maxRecords] = [
    bind(max.maxCostPerDay, 'integer'),
    bind(max.maxMutationsPerDay, 'integer'),
    bind(max.maxRecordsPerDay, 'integer'),
  ];
  const repeats = call.mutation ? admittedBefore : call.idempotencyKey === null ? () => 'false' : beingTried;
  return sql.statement(
    `WITH charge AS MATERIALIZED (
      SELECT CASE WHEN repeated THEN 0 ELSE ${cost} END AS cost,
        CASE WHEN repeated THEN 0 ELSE ${bind(mutationsOf(call), 'integer')} END AS mutations
      FROM (SELECT ${repeats(sql, { request, call })} AS repeated) asked),
    room AS MATERIALIZED (
      SELECT r.run_id FROM agent.runs r, charge
      WHERE r.tenant_id = ${tenant} AND r.run_id = ${run} AND r.user_id = ${user} AND r.client_id = ${client}
        AND r.status = 'RUNNING' AND r.expires_at > clock_timestamp()
        AND r.requests < ${bind(LIMITS.agent_requests_of_run_max, 'integer')}
        AND r.cost + charge.cost <= r.max_cost AND r.mutations + charge.mutations <= r.max_mutations
        AND (charge.mutations = 0 OR r.records_changed < r.max_records)
      FOR NO KEY UPDATE OF r),
    day AS (
      INSERT INTO agent.days AS d (tenant_id, client_id, user_id, cost, mutations, max_records)
      SELECT ${tenant}, ${client}, ${user}, charge.cost, charge.mutations, ${maxRecords} FROM room, charge
      WHERE (charge.cost = 0 OR charge.cost <= ${maxCost})
        AND (charge.mutations = 0 OR charge.mutations <= ${maxMutations} AND ${maxRecords} > 0)
      ON CONFLICT (tenant_id, client_id, user_id) DO UPDATE SET
        began_at = CASE WHEN ${DAY_OVER} THEN clock_timestamp() ELSE d.began_at END,
        cost = EXCLUDED.cost + CASE WHEN ${DAY_OVER} THEN 0 ELSE d.cost END,
        mutations = EXCLUDED.mutations + CASE WHEN ${DAY_OVER} THEN 0 ELSE d.mutations END,
        records = CASE WHEN ${DAY_OVER} THEN 0 ELSE d.records END,
        max_records = EXCLUDED.max_records
      WHERE ${DAY_OVER} OR (EXCLUDED.cost = 0 OR d.cost + EXCLUDED.cost <= ${maxCost})
        AND (EXCLUDED.mutations = 0 OR d.mutations + EXCLUDED.mutations <= ${maxMutations}
          AND d.records < ${maxRecords})
      RETURNING 1),
    counted AS (
      UPDATE agent.runs r SET cost = r.cost + charge.cost, requests = r.requests + 1,
        mutations = r.mutations + charge.mutations
      FROM charge, day WHERE r.tenant_id = ${tenant} AND r.run_id = ${run}
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

/** Daily use of user and client, locked until the transaction ends; no row: the first use of a day. */
export function lockDayStatement({ request }: Call): Statement {
  const sql = new Sql();
  return sql.statement(
    `WITH locked AS MATERIALIZED (
      SELECT * FROM agent.days WHERE tenant_id = ${sql.bind(request.tenantId, 'uuid')}
        AND client_id = ${sql.bind(request.clientId, 'text')} AND user_id = ${sql.bind(request.userId, 'uuid')}
      FOR NO KEY UPDATE)
    SELECT d.cost, d.mutations, d.records, d.began_at + interval '24 hours' AS "resetsAt" FROM locked d
    WHERE NOT ${DAY_OVER}`,
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
