/**
 * Runs as they are at this moment: those of clients that the configuration does not allow any more have ended when it
 * is read. Source: docs/reference/agents.md#runs.
 */

import type { AgentActions } from '../../../contracts/agent.ts';
import type { RecordName } from '../../../contracts/data.ts';
import type { Handler } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { listPage } from '../../../lib/query/list-page.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { sealFor } from '../../../lib/values/sealed.ts';
import { accessOf, requireActiveUser, visibleRuns } from '../callers.ts';
import type { AgentDeps } from '../deps.ts';
import { sightOf } from '../sight.ts';
import { presentRun, presentSummary } from './present.ts';
import { runNotFound } from './refusals.ts';
import { type RunRow, type RunSummaryRow, runStatement, runStatusStatement, runsStatement } from './run.sql.ts';

export const getRun: Handler<'agent.runs.get', AgentDeps> = async (deps, request, call) => {
  const { runId } = call.path;
  const { tenantId } = request;
  const user = await requireActiveUser(deps.findUser, request);
  const sight = visibleRuns(request, user);
  const { objects } = accessOf(await deps.configurations.current(tenantId), user);
  const row = isUuid(runId)
    ? await deps.database.shared('agent', tenantId, (tx) => tx.first<RunRow>(runStatement(tenantId, runId, sight)))
    : null;
  if (!row) throw runNotFound();
  const [shown] = await withShownContext(deps, request, [row]);
  const knows = (name: string): boolean => row.userId === request.userId || ownEntry(objects, name) !== undefined;
  return { body: presentRun(shown ?? row, knows) };
};

/** The run's subject is shown to readers of that record, and to the user who named it. */
export async function withShownContext<Row extends RunSummaryRow>(
  deps: AgentDeps,
  request: RequestContext,
  rows: readonly Row[],
): Promise<Row[]> {
  const recordOf = ({ context, userId }: Row): RecordName | null =>
    context && userId !== request.userId ? { objectApiName: context.objectApiName, id: context.recordId } : null;
  const sees = await sightOf(
    deps,
    request,
    rows.flatMap((row) => recordOf(row) ?? []),
  );
  return rows.map((row) => {
    const record = recordOf(row);
    return record && !sees(record) ? { ...row, context: null } : row;
  });
}

export const listRuns: Handler<'agent.runs.list', AgentDeps> = async (deps, request, { query }) => {
  const { tenantId } = request;
  const visible = visibleRuns(request, await requireActiveUser(deps.findUser, request));
  await deps.configurations.current(tenantId);
  const { status = null, agentKey = null, mine = false, ...paging } = query;
  const sight = mine ? { ...visible, userId: request.userId } : visible;
  const list = { name: 'agent.runs', parameters: { status, agentKey, mine } };
  const seal = sealFor(request, deps.sealingKeys, platformTime());
  return listPage(list, parseListQuery(paging, 'query'), seal, {
    rows: ([before = null], take) => {
      const statement = runsStatement(tenantId, sight, { status, agentKey, before, take });
      return deps.database.shared('agent', tenantId, (tx) => tx.all<RunSummaryRow>(statement));
    },
    keys: ({ runId }) => [runId],
    present: async (page) => (await withShownContext(deps, request, page)).map(presentSummary),
  });
};

/** For data, which changes records on behalf of people who revert runs. */
export async function runState(
  { database, configurations }: AgentDeps,
  { tenantId, runId }: AgentActions['agent.runs.state']['params'],
): Promise<AgentActions['agent.runs.state']['result']> {
  if (!isUuid(runId)) return null;
  await configurations.current(tenantId);
  const statement = runStatusStatement(tenantId, runId);
  return database.shared('agent', tenantId, (tx) => tx.first<Pick<RunRow, 'status'>>(statement));
}
