/** Calls under a run, and their changes. Source: docs/reference/agents.md#runs. */

import { Op } from 'sequelize';
import type { Handler, OperationOutput } from '../../../contracts/operations.ts';
import { listPage } from '../../../lib/query/list-page.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { sealFor } from '../../../lib/values/sealed.ts';
import { on } from '../../../mixins/models/sequelize.ts';
import { accessOf, requireActiveUser, visibleRuns } from '../callers.ts';
import type { AgentDeps } from '../deps.ts';
import { StepModel } from '../models/step.ts';
import { recordInPath, type Sees, shownPath, sightOf } from '../sight.ts';
import { time } from './present.ts';
import { runNotFound } from './refusals.ts';
import { type RunRow, runStatement } from './run.sql.ts';

type Step = OperationOutput<'agent.steps.list'>['records'][number];

export const listSteps: Handler<'agent.steps.list', AgentDeps> = async (deps, request, { path: { runId }, query }) => {
  const { tenantId, userId } = request;
  const user = await requireActiveUser(deps.findUser, request);
  const sight = visibleRuns(request, user);
  const run = isUuid(runId)
    ? await deps.database.shared('agent', tenantId, (tx) => tx.first<RunRow>(runStatement(tenantId, runId, sight)))
    : null;
  if (!run) throw runNotFound();
  const access = accessOf(await deps.configurations.current(tenantId), user);
  const isOwn = run.userId === userId;
  const pathOf = (row: StepModel, sees: Sees): string =>
    isOwn ? row.path : shownPath(row, access, { sees, reads: false });
  const list = { name: 'agent.steps', parameters: { runId } };
  const seal = sealFor(request, deps.sealingKeys, platformTime());
  return listPage(list, parseListQuery(query, 'query'), seal, {
    rows: ([after], limit) =>
      deps.database.shared('agent', tenantId, (tx) =>
        StepModel.findAll({
          where: { tenantId, runId, ...(after === undefined ? {} : { stepId: { [Op.gt]: after } }) },
          order: [['stepId', 'ASC']],
          limit,
          ...on(tx),
        }),
      ),
    keys: ({ stepId }) => [stepId],
    present: async (page) => {
      const requestIds = page.filter(({ mutation }) => mutation).map(({ requestId }) => requestId);
      const changed = await deps.recordsOfRequests({ tenantId, userId, agentRunId: runId, requestIds });
      const named = isOwn ? [] : page.flatMap((row) => recordInPath(row) ?? []);
      const sees = await sightOf(deps, request, named);
      return page.map((row) => presentStep(row, pathOf(row, sees), changed[row.requestId] ?? []));
    },
  });
};

const presentStep = (row: StepModel, path: string, recordsChanged: Step['recordsChanged']): Step => ({
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
