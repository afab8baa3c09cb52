/**
 * Ends what has passed its time, or lost the grant that it stood on. Every reader sees the former at once by the
 * clock; here it is written down, with its events. Doing it twice does no harm.
 */

import { type Caller as BrokerCaller, call } from '../../../contracts/call.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { Snapshot } from '../../../lib/schema/snapshot.ts';
import { requestId } from '../../../lib/values/ids.ts';
import type { Database, Tx } from '../../../mixins/database/database.ts';
import { platformCaller } from '../../../mixins/mutation/audit.ts';
import { activeClients } from '../callers.ts';
import { type Events, endChanges, type Note, writeEvents, writeNotes } from '../events.ts';
import { type EndedRun, endRunsStatement } from '../runs/end.sql.ts';
import {
  dropOutputsStatement,
  dropRequestsStatement,
  dueTenantsStatement,
  type ExpiredApproval,
  escalateStatement,
  expireApprovalsStatement,
  forgetStatement,
  type GrantedRun,
  grantedRunsStatement,
  overdueRunsStatement,
  runsOfGrantsStatement,
  runsOfOtherClientsStatement,
  tenantsWithRunsStatement,
} from './upkeep.sql.ts';

const TENANTS_PER_ROUND = 1_000;
const ROWS_PER_ROUND = 500;
const GRANTS_PER_CALL = 200;

/** One round over all tenants with something to do. */
export async function expireDue(
  database: Database,
  signal: AbortSignal,
  failed: (tenantId: string, error: unknown) => void,
): Promise<void> {
  const due = await database.login((tx) =>
    tx.all<{ tenantId: string }>(dueTenantsStatement(LIMITS.agent_retention_days, TENANTS_PER_ROUND)),
  );
  for (const { tenantId } of due) {
    if (signal.aborted) return;
    await expireOfTenant(database, tenantId).catch((error: unknown) => failed(tenantId, error));
  }
}

function expireOfTenant(database: Database, tenantId: string): Promise<void> {
  return database.shared('agent', tenantId, async (tx) => {
    const overdue = await tx.all<{ runId: string }>(overdueRunsStatement(tenantId, ROWS_PER_ROUND));
    const runs = await endRuns(tx, tenantId, overdue, 'EXPIRED');
    const approvals = await tx.all<ExpiredApproval>(expireApprovalsStatement(tenantId, ROWS_PER_ROUND));
    await tx.query(escalateStatement(tenantId));
    await tx.query(forgetStatement(tenantId, LIMITS.agent_retention_days, ROWS_PER_ROUND));
    await writeNotes(tx, tenantId, [
      ...runs.map((run) => noteOfEnd(run, 'agent.runs.expire', 'EXPIRED')),
      ...approvals.map(noteOfExpiry),
    ]);
    await tell(tx, tenantId, [
      ...runs.map((run) => ({ type: 'agent.run.expired', data: eventOf(run) })),
      ...approvals.map(({ approvalId, runId }) => ({ type: 'agent.approval.expired', data: { approvalId, runId } })),
    ]);
  });
}

const eventOf = ({ runId, agentKey }: EndedRun): Record<string, unknown> => ({ runId, agentKey });

const noteOfEnd = (
  { runId, approvalIds }: EndedRun,
  operationId: Note['operationId'],
  status: 'EXPIRED' | 'CANCELED',
): Note => ({ runId, operationId, changes: endChanges(runId, status, approvalIds) });

const noteOfExpiry = ({ approvalId, runId, status }: ExpiredApproval): Note => ({
  runId,
  operationId: 'agent.approvals.expire',
  changes: { approvalId: { from: approvalId, to: approvalId }, status: { from: status, to: 'EXPIRED' } },
});

const endRuns = async (
  tx: Tx,
  tenantId: string,
  runs: readonly { readonly runId: string }[],
  status: 'EXPIRED' | 'CANCELED',
): Promise<EndedRun[]> => {
  const ids = runs.map(({ runId }) => runId);
  return ids.length === 0 ? [] : tx.all<EndedRun>(endRunsStatement(tenantId, ids, status));
};

const tell = (tx: Tx, tenantId: string, events: Events): Promise<void> =>
  events.length === 0
    ? Promise.resolve()
    : writeEvents(tx, { tenantId, ...platformCaller('job', requestId()) }, events);

/** Leaves out what the oldest ended runs and approvals of each tenant take beyond `maxBytes`. */
export async function dropOldContents(
  database: Database,
  signal: AbortSignal,
  failed: (tenantId: string, error: unknown) => void,
  maxBytes: number = LIMITS.agent_kept_max_bytes,
): Promise<void> {
  const tenants = await database.login((tx) => tx.all<{ tenantId: string }>(tenantsWithRunsStatement()));
  for (const { tenantId } of tenants) {
    if (signal.aborted) return;
    for (const statement of [dropOutputsStatement(tenantId, maxBytes), dropRequestsStatement(tenantId, maxBytes)])
      await database
        .shared('agent', tenantId, (tx) => tx.query(statement))
        .catch((error: unknown) => failed(tenantId, error));
  }
}

/** These grants have ended, and with them the runs that began under them. */
export async function cancelRunsOfGrants(database: Database, grantIds: readonly string[]): Promise<void> {
  const runs = await database.login((tx) => tx.all<GrantedRun>(runsOfGrantsStatement(grantIds)));
  await cancelRuns(database, runs);
}

/** The clients of these runs were set inactive, or removed, with this configuration. */
export async function cancelRunsOfInactiveClients(
  database: Database,
  tenantId: string,
  snapshot: Snapshot,
): Promise<void> {
  const statement = runsOfOtherClientsStatement(tenantId, activeClients(snapshot));
  await cancelRuns(database, await database.shared('agent', tenantId, (tx) => tx.all<GrantedRun>(statement)));
}

/** Answers the runs that were active until now. */
export async function cancelRuns(
  database: Database,
  runs: readonly Pick<GrantedRun, 'tenantId' | 'runId'>[],
  operationId: Note['operationId'] = 'agent.runs.cancel',
): Promise<EndedRun[]> {
  const canceled: EndedRun[] = [];
  for (const [tenantId, ofTenant] of Map.groupBy(runs, (run) => run.tenantId))
    await database.shared('agent', tenantId, async (tx) => {
      const ended = await endRuns(tx, tenantId, ofTenant, 'CANCELED');
      await writeNotes(
        tx,
        tenantId,
        ended.map((run) => noteOfEnd(run, operationId, 'CANCELED')),
      );
      await tell(
        tx,
        tenantId,
        ended.map((run) => ({ type: 'agent.run.canceled', data: eventOf(run) })),
      );
      canceled.push(...ended);
    });
  return canceled;
}

/** Asks whether the grants of active runs still live: the event about their end may have been lost. */
export async function cancelUnauthorized(database: Database, caller: BrokerCaller, signal: AbortSignal): Promise<void> {
  let after: string | null = null;
  while (!signal.aborted) {
    const statement = grantedRunsStatement(after, GRANTS_PER_CALL);
    const runs: GrantedRun[] = await database.login((tx) => tx.all<GrantedRun>(statement));
    if (runs.length === 0) return;
    const grants = runs.map(({ tenantId, grantId, clientId, userId }) => ({ tenantId, grantId, clientId, userId }));
    const states = await call(caller, 'auth.grants.check', { grants, unused: true });
    await cancelRuns(
      database,
      runs.filter((_, i) => states[i]?.active === false || states[i]?.clientActive === false),
    );
    after = runs.at(-1)?.runId ?? null;
  }
}
