/** What was called under a run, and what it changed. Source: docs/reference/agents.md#runs. */
import { Op } from 'sequelize';
import type { Handler, OperationOutput } from '../../../contracts/operations.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { on } from '../../../mixins/models/sequelize.ts';
import { accessOf, requireActiveUser, visibleRuns } from '../callers.ts';
import type { AgentDeps } from '../deps.ts';
import { StepModel } from '../models/step.ts';
import { pageOf } from '../page.ts';
import { recordInPath, type Sees, shownPath, sightOf } from '../sight.ts';
import { time } from './present.ts';
import { runNotFound } from './refusals.ts';
import { type RunRow, runStatement } from './run.sql.ts';

type Step = OperationOutput<'agent.steps.list'>['records'][number];

interface ShownStep {
  readonly row: StepModel;
  readonly path: string;
  readonly recordsChanged: Step['recordsChanged'];
}

export const listSteps: Handler<'agent.steps.list', AgentDeps> = async (deps, request, { path: { runId }, query }) => {
  const { tenantId, userId } = request;
  const user = await requireActiveUser(deps.findUser, request);
  const sight = visibleRuns(request, user);
  const run = isUuid(runId)
    ? await deps.database.shared('agent', tenantId, (tx) => tx.first<RunRow>(runStatement(tenantId, runId, sight)))
    : null;
  if (!run) throw runNotFound();
  const access = accessOf(await deps.configurations.current(tenantId), user);
  const pathOf = (row: StepModel, sees: Sees): string =>
    run.userId === userId ? row.path : shownPath(row, access, sees);
  return pageOf(
    deps,
    request,
    query,
    { name: 'agent.steps', parameters: { runId } },
    {
      rows: async (after, limit): Promise<ShownStep[]> => {
        const rows = await deps.database.shared('agent', tenantId, (tx) =>
          StepModel.findAll({
            where: { tenantId, runId, ...(after === null ? {} : { stepId: { [Op.gt]: after } }) },
            order: [['stepId', 'ASC']],
            limit,
            ...on(tx),
          }),
        );
        const requestIds = rows.filter(({ mutation }) => mutation).map(({ requestId }) => requestId);
        const changed = await deps.recordsOfRequests({ tenantId, userId, agentRunId: runId, requestIds });
        const named = run.userId === userId ? [] : rows.flatMap((row) => recordInPath(row) ?? []);
        const sees = await sightOf(deps, request, named);
        return rows.map((row) => ({ row, path: pathOf(row, sees), recordsChanged: changed[row.requestId] ?? [] }));
      },
      key: ({ row }) => row.stepId,
      present: presentStep,
    },
  );
};

const presentStep = ({ row, path, recordsChanged }: ShownStep): Step => ({
  stepId: row.stepId,
  at: time(String(row.at)),
  operationId: row.operationId,
  method: row.method,
  path,
  status: row.status,
  requestId: row.requestId,
  cost: row.cost,
  approvalId: row.approvalId,
  recordsChanged,
});
