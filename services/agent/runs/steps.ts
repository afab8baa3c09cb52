/** What was called under a run. Source: docs/reference/agents.md#runs. */
import { Op } from 'sequelize';
import type { Handler } from '../../../contracts/operations.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { on } from '../../../mixins/models/sequelize.ts';
import { requireActiveUser, visibleRuns } from '../callers.ts';
import type { AgentDeps } from '../deps.ts';
import { StepModel } from '../models/step.ts';
import { pageOf } from '../page.ts';
import { time } from './present.ts';
import { runNotFound } from './refusals.ts';
import { type RunRow, runStatement } from './run.sql.ts';

type Row = Pick<
  StepModel,
  'stepId' | 'at' | 'operationId' | 'method' | 'path' | 'status' | 'requestId' | 'cost' | 'approvalId'
>;

export const listSteps: Handler<'agent.steps.list', AgentDeps> = async (deps, request, { path: { runId }, query }) => {
  const { tenantId } = request;
  const sight = visibleRuns(request, await requireActiveUser(deps.findUser, request));
  const run = isUuid(runId)
    ? await deps.database.shared('agent', tenantId, (tx) => tx.first<RunRow>(runStatement(tenantId, runId, sight)))
    : null;
  if (!run) throw runNotFound();
  return pageOf(
    deps,
    request,
    query,
    { name: 'agent.steps', parameters: { runId } },
    {
      rows: (after, limit) =>
        deps.database.shared('agent', tenantId, (tx) =>
          StepModel.findAll({
            where: { tenantId, runId, ...(after === null ? {} : { stepId: { [Op.gt]: after } }) },
            order: [['stepId', 'ASC']],
            limit,
            ...on(tx),
          }),
        ),
      key: ({ stepId }) => stepId,
      present: presentStep,
    },
  );
};

const presentStep = (row: Row) => ({
  stepId: row.stepId,
  at: time(String(row.at)),
  operationId: row.operationId,
  method: row.method,
  path: row.path,
  status: row.status,
  requestId: row.requestId,
  cost: row.cost,
  approvalId: row.approvalId,
  recordsChanged: [],
});
