/** Events and audit entries about runs and approvals, outside of the frame of mutations. */
import { requestId } from '../../lib/values/ids.ts';
import type { Tx } from '../../mixins/database/database.ts';
import { serviceRole, tenantRole } from '../../mixins/database/roles.ts';
import { Sql } from '../../mixins/database/sql.ts';
import { auditSql, type Caller, CallerSql, outboxSql, platformCaller } from '../../mixins/mutation/audit.ts';

export type Events = readonly {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}[];

/** Writes events in the transaction of what they tell about; it goes on as the role of this service. */
export async function writeEvents(
  tx: Tx,
  caller: Caller & { readonly tenantId: string },
  events: Events,
): Promise<void> {
  tx.actAs(tenantRole(caller.tenantId));
  const { schema } = tx;
  const written = events.map(({ type, data }) => {
    const sql = new Sql();
    const event = { type, data: sql.bind(JSON.stringify(data), 'jsonb') };
    return tx.query(sql.statement(outboxSql(schema, new CallerSql(sql.for(caller)), event)));
  });
  tx.actAs(serviceRole('agent', caller.tenantId));
  await Promise.all(written);
}

/** Actions of the platform itself, or of an operator, on a run. */
export interface Note {
  readonly runId: string;
  readonly operationId:
    | 'agent.runs.expire'
    | 'agent.runs.cancel'
    | 'agent.approvals.expire'
    | 'agent.tenants.cancelRuns';
  readonly changes: Changes;
}

type Changes = Readonly<Record<string, { readonly from: unknown; readonly to: unknown }>>;

/** The end of a run as the audit trail has it, with the approvals that were taken back. */
export const endChanges = (runId: string, status: string, approvalIds: readonly string[]): Changes => ({
  runId: { from: runId, to: runId },
  status: { from: 'RUNNING', to: status },
  ...(approvalIds.length > 0 ? { openApprovals: { from: approvalIds, to: [] } } : {}),
});

/** Audits actions that no user requested, in the transaction that does them. */
export async function writeNotes(tx: Tx, tenantId: string, notes: readonly Note[]): Promise<void> {
  if (notes.length === 0) return;
  tx.actAs(tenantRole(tenantId));
  const { schema } = tx;
  const id = requestId();
  const written = notes.map(({ runId, operationId, changes }) => {
    const sql = new Sql();
    const caller = new CallerSql(sql.for({ ...platformCaller('job', id), aboutRunId: runId }));
    const columns = { changes: sql.bind(JSON.stringify(changes), 'jsonb') };
    return tx.query(sql.statement(auditSql(schema, sql, caller, { operationId, outcome: 'committed' }, columns)));
  });
  tx.actAs(serviceRole('agent', tenantId));
  await Promise.all(written);
}
