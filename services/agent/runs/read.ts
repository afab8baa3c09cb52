/** Runs as they are at this moment. Source: docs/reference/agents.md#runs. */
import type { AgentActions } from '../../../contracts/agent.ts';
import type { Handler } from '../../../contracts/operations.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { requireActiveUser, visibleRuns } from '../callers.ts';
import type { AgentDeps } from '../deps.ts';
import { pageOf } from '../page.ts';
import { presentRun, presentSummary } from './present.ts';
import { runNotFound } from './refusals.ts';
import { type RunRow, type RunSummaryRow, runStatement, runsStatement } from './run.sql.ts';

export const getRun: Handler<'agent.runs.get', AgentDeps> = async (deps, request, call) => {
  const { runId } = call.path;
  const { tenantId } = request;
  const sight = visibleRuns(request, await requireActiveUser(deps.findUser, request));
  const row = isUuid(runId)
    ? await deps.database.shared('agent', tenantId, (tx) => tx.first<RunRow>(runStatement(tenantId, runId, sight)))
    : null;
  if (!row) throw runNotFound();
  return { body: presentRun(row) };
};

export const listRuns: Handler<'agent.runs.list', AgentDeps> = async (deps, request, { query }) => {
  const { tenantId } = request;
  const visible = visibleRuns(request, await requireActiveUser(deps.findUser, request));
  const mine = query.mine ?? false;
  const sight = mine ? { ...visible, userId: request.userId } : visible;
  const filter = { status: query.status ?? null, agentKey: query.agentKey ?? null };
  return pageOf(
    deps,
    request,
    query,
    { name: 'agent.runs', parameters: { ...filter, mine } },
    {
      rows: (before, take) =>
        deps.database.shared('agent', tenantId, (tx) =>
          tx.all<RunSummaryRow>(runsStatement(tenantId, sight, { ...filter, before, take })),
        ),
      key: ({ runId }) => runId,
      present: presentSummary,
    },
  );
};

/** For data, which changes records on behalf of people who revert runs. */
export async function runState(
  { database }: AgentDeps,
  { tenantId, runId }: AgentActions['agent.runs.state']['params'],
): Promise<AgentActions['agent.runs.state']['result']> {
  const statement = runStatement(tenantId, runId, { userId: null, clientId: null });
  const run = isUuid(runId) ? await database.shared('agent', tenantId, (tx) => tx.first<RunRow>(statement)) : null;
  return run && { status: run.status };
}
