/** Begins a run. Source: docs/reference/agents.md#runs. */

import type { CreateRun } from '../../../contracts/agent.ts';
import { addressOf, type Handler } from '../../../contracts/operations.ts';
import type { Access } from '../../../lib/access/types.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { isBlankText, textProblem } from '../../../lib/schema/field-types/common.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import { on, secondsFromNow } from '../../../mixins/models/sequelize.ts';
import { mutate } from '../../../mixins/mutation/mutate.ts';
import { accessOf, ownRuns, requireActiveClient, requireActiveUser } from '../callers.ts';
import type { AgentDeps } from '../deps.ts';
import { RunModel } from '../models/run.ts';
import { budgetOf, type Excess, policiesOf } from '../policy/evaluate.ts';
import { presentRun } from './present.ts';
import { type ActiveRuns, activeRunsStatement, lockActiveRunsStatement, type RunRow, runStatement } from './run.sql.ts';

const DEFAULT_SECONDS = 3_600;

export const createRun: Handler<'agent.runs.create', AgentDeps> = async (deps, request, call) => {
  const { tenantId } = request;
  const user = await requireActiveUser(deps.findUser, request);
  const snapshot = await deps.configurations.current(tenantId);
  requireActiveClient(request, snapshot);
  const { body } = call;
  return mutate(deps.database, request, call, {
    role: { service: 'agent' },
    work: async (unit) => {
      requireGoal(body.goal);
      requireKnownObject(accessOf(snapshot, user), body.context);
      const { budget, excess } = budgetOf(policiesOf(snapshot, request.clientId), body.budget ?? {});
      if (excess.length > 0) throw overBudget(excess);
      await requireRoom(unit.tx, request);
      const runId = uuidv7();
      await RunModel.create(
        {
          tenantId,
          runId,
          agentKey: body.agentKey,
          agentVersion: body.agentVersion ?? null,
          goal: body.goal,
          dryRun: body.dryRun ?? false,
          userId: request.userId,
          clientId: request.clientId,
          grantId: request.grantId,
          context: body.context ?? null,
          plan: body.plan ?? null,
          ...budget,
          expiresAt: secondsFromNow(body.expiresInSeconds ?? DEFAULT_SECONDS),
        },
        on(unit.tx),
      );
      const row = await unit.tx.one<RunRow>(runStatement(tenantId, runId, ownRuns(request)));
      unit.audit({
        aboutRunId: runId,
        changes: { runId: { from: null, to: runId }, agentKey: { from: null, to: body.agentKey } },
      });
      unit.emit({ type: 'agent.run.created', data: { runId, agentKey: body.agentKey } });
      return { status: 201, headers: { Location: addressOf('agent.runs.get', { runId }) }, body: presentRun(row) };
    },
  });
};

/** People read it before they decide. */
function requireGoal(goal: string): void {
  const problem = isBlankText(goal) ? 'says nothing.' : textProblem(goal);
  if (problem === null) return;
  const message = `The goal ${problem}`;
  throw new PlatformError('VALIDATION_FAILED', message, {
    errors: [violation('/goal', 'FIELD_FORMAT_INVALID', message)],
  });
}

/** The run's subject is shown to people, so the user must be able to read it. */
function requireKnownObject({ objects }: Access, context: CreateRun['context']): void {
  if (context === undefined || objects[context.objectApiName]) return;
  const message = 'The object does not exist, or you have no access to it.';
  throw new PlatformError('VALIDATION_FAILED', message, {
    errors: [violation('/context/objectApiName', 'REFERENCE_NOT_FOUND', message)],
  });
}

function overBudget(excess: readonly Excess[]): PlatformError {
  const errors = excess.map(({ name, max, policy }) =>
    violation(`/budget/${name}`, 'AGENT_POLICY_DENIED', `${policy} allows at most ${max}.`, {
      ruleApiName: policy,
      params: { max },
    }),
  );
  const [first] = excess;
  return new PlatformError('AGENT_POLICY_DENIED', 'The budget is larger than the agent policies allow.', {
    errors,
    details: { policyApiName: first?.policy ?? null },
  });
}

async function requireRoom(tx: Tx, { tenantId, userId }: RequestContext): Promise<void> {
  await tx.query(lockActiveRunsStatement(tenantId));
  const { ofUser, ofTenant } = await tx.one<ActiveRuns>(activeRunsStatement(tenantId, userId));
  const refuse = (whose: string, max: number): PlatformError =>
    new PlatformError('CONCURRENCY_LIMIT_EXCEEDED', `${whose} already has ${max} active runs, the maximum.`, {
      retryAfterSeconds: 60,
      details: { max },
    });
  if (ofUser >= LIMITS.agent_runs_of_user_max) throw refuse('The user', LIMITS.agent_runs_of_user_max);
  if (ofTenant >= LIMITS.agent_runs_of_tenant_max) throw refuse('The tenant', LIMITS.agent_runs_of_tenant_max);
}
