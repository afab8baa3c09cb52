/** Statements by which a change asks agent, in its own transaction, whether it may be committed. */
import { Sql } from '../database/sql.ts';
import type { Statement } from '../database/statement.ts';

/** Of a request under a run. */
interface RunRequest {
  readonly tenantId: string;
  readonly runId: string;
  readonly requestId: string;
}

/** `verdict` is RUNNING, or the code that the change is refused with. */
export function continueRunSql({ tenantId, runId }: RunRequest, records: number): Statement {
  const sql = new Sql();
  const { bind } = sql;
  return sql.statement(`SELECT agent.continue_run(${bind(tenantId, 'uuid')}, ${bind(runId, 'uuid')},
    ${bind(records, 'integer')}) AS verdict`);
}

/** `verdict` is CONSUMED, or the code that the change is refused with. */
export function consumeApprovalSql(
  { tenantId, runId, requestId }: RunRequest,
  approval: { readonly id: string; readonly fingerprint: string },
): Statement {
  const sql = new Sql();
  const { bind } = sql;
  return sql.statement(`SELECT agent.consume_approval(${bind(tenantId, 'uuid')}, ${bind(approval.id, 'uuid')},
    ${bind(runId, 'uuid')}, ${bind(approval.fingerprint, 'text')}, ${bind(requestId, 'text')}) AS verdict`);
}

/** Ends an approved request that would do something else by now. */
export function endStaleApprovalSql(asked: {
  readonly tenantId: string;
  readonly runId: string;
  readonly approvalId: string;
}): Statement {
  const sql = new Sql();
  const { bind } = sql;
  return sql.statement(`SELECT agent.end_stale_approval(${bind(asked.tenantId, 'uuid')},
    ${bind(asked.approvalId, 'uuid')}, ${bind(asked.runId, 'uuid')})`);
}
