/** Statements that end runs, with what still waits for a decision or for its use. */
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';

export interface EndedRun {
  readonly runId: string;
  readonly agentKey: string;
  /** Approvals cancelled with it. */
  readonly approvalIds: readonly string[];
}

/** Of these runs: those that are active. Their open approvals are canceled. */
export function endRunsStatement(
  tenantId: string,
  runIds: readonly string[],
  status: 'COMPLETED' | 'FAILED' | 'CANCELED' | 'EXPIRED',
): Statement {
  const sql = new Sql();
  const tenant = sql.bind(tenantId, 'uuid');
  return sql.statement(
    `WITH ended AS (
      UPDATE agent.runs SET status = ${sql.bind(status, 'text')},
        ended_at = CASE WHEN expires_at <= clock_timestamp() THEN expires_at ELSE clock_timestamp() END
      WHERE tenant_id = ${tenant} AND run_id = ANY (${sql.bind(runIds, 'uuid[]')}) AND status = 'RUNNING'
      RETURNING run_id, agent_key),
    canceled AS (
      UPDATE agent.approvals SET status = 'CANCELED'
      WHERE tenant_id = ${tenant} AND status IN ('PENDING', 'APPROVED') AND run_id IN (SELECT run_id FROM ended)
      RETURNING run_id, approval_id)
    SELECT run_id AS "runId", agent_key AS "agentKey",
      ARRAY(SELECT approval_id::text FROM canceled WHERE canceled.run_id = ended.run_id) AS "approvalIds"
    FROM ended`,
  );
}

export interface Report {
  readonly outcome: string;
  readonly summary: string | null;
  /** JSON. */
  readonly output: string | null;
  readonly modelUsage: string | null;
}

/** Stores the report of a run that has just ended. */
export function reportStatement(tenantId: string, runId: string, report: Report): Statement {
  const sql = new Sql();
  const { bind } = sql;
  return sql.statement(
    `UPDATE agent.runs SET outcome = ${bind(report.outcome, 'text')}, summary = ${bind(report.summary, 'text')},
      output = ${bind(report.output, 'json')}, model_usage = ${bind(report.modelUsage, 'jsonb')}
    WHERE tenant_id = ${bind(tenantId, 'uuid')} AND run_id = ${bind(runId, 'uuid')}`,
  );
}
