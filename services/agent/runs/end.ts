/**
 * Ends runs: completed by the agent, or stopped by a person. Source: docs/reference/agents.md#runs.
 */

import type { RunOutcome } from '../../../contracts/agent.ts';
import type { Handler } from '../../../contracts/operations.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { mutate } from '../../../mixins/mutation/mutate.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import { ownRuns, requireActiveUser, visibleRuns } from '../callers.ts';
import type { AgentDeps } from '../deps.ts';
import { endChanges } from '../events.ts';
import { type EndedRun, endRunsStatement, type Report, reportStatement } from './end.sql.ts';
import { presentRun } from './present.ts';
import { withShownContext } from './read.ts';
import { endedRefusal, runNotFound } from './refusals.ts';
import { type LockedRun, lockRunStatement, type RunRow, runStatement, type Sight } from './run.sql.ts';

const STATUS_OF = { succeeded: 'COMPLETED', failed: 'FAILED', canceled: 'CANCELED' } as const satisfies Record<
  RunOutcome,
  string
>;

const EVENT_OF = { succeeded: 'completed', failed: 'failed', canceled: 'canceled' } as const satisfies Record<
  RunOutcome,
  string
>;

export const completeRun: Handler<'agent.runs.complete', AgentDeps> = async (deps, request, call) => {
  await requireActiveUser(deps.findUser, request);
  await deps.configurations.current(request.tenantId);
  const { outcome, summary, output, modelUsage } = call.body;
  const text = output === undefined ? null : JSON.stringify(output);
  if (text !== null && Buffer.byteLength(text) > LIMITS.agent_output_max_bytes) throw outputTooLarge();
  const report = { outcome, summary, output: text, modelUsage: modelUsage ? JSON.stringify(modelUsage) : null };
  return mutate(deps.database, request, call, {
    role: { service: 'agent' },
    work: (unit) => end(unit, call.path.runId, ownRuns(request), outcome, report),
  });
};

export const cancelRun: Handler<'agent.runs.cancel', AgentDeps> = async (deps, request, call) => {
  const sight = visibleRuns(request, await requireActiveUser(deps.findUser, request));
  const { runId } = call.path;
  const { tenantId } = request;
  const run = isUuid(runId)
    ? await deps.database.shared('agent', tenantId, (tx) => tx.first<RunRow>(runStatement(tenantId, runId, sight)))
    : null;
  const [shown] = run ? await withShownContext(deps, request, [run]) : [];
  return mutate(deps.database, request, call, {
    role: { service: 'agent' },
    work: (unit) => end(unit, runId, sight, 'canceled', NO_REPORT, shown?.context ?? null),
  });
};

const NO_REPORT: Report = { outcome: 'canceled', summary: null, output: null, modelUsage: null };

async function end(
  unit: Unit,
  runId: string,
  sight: Sight,
  outcome: RunOutcome,
  report: Report,
  context?: RunRow['context'],
): Promise<OperationReply> {
  const { tx, request } = unit;
  const { tenantId } = request;
  const run = isUuid(runId) ? await tx.first<LockedRun>(lockRunStatement(tenantId, runId, sight)) : null;
  if (!run) throw runNotFound();
  const refusal = endedRefusal(run);
  if (refusal) throw refusal;
  const { approvalIds } = await tx.one<EndedRun>(endRunsStatement(tenantId, [runId], STATUS_OF[outcome]));
  await tx.query(reportStatement(tenantId, runId, report));
  const row = await tx.one<RunRow>(runStatement(tenantId, runId, sight));
  const status = STATUS_OF[outcome];
  unit.audit({
    aboutRunId: runId,
    changes: endChanges(runId, status, approvalIds),
  });
  unit.emit({ type: `agent.run.${EVENT_OF[outcome]}`, data: { runId, agentKey: run.agentKey } });
  return { status: 201, body: presentRun(context === undefined ? row : { ...row, context }) };
}

function outputTooLarge(): PlatformError {
  const message = `output is longer than ${LIMITS.agent_output_max_bytes} bytes as JSON.`;
  return new PlatformError('REQUEST_TOO_LARGE', message, {
    errors: [violation('/output', 'REQUEST_TOO_LARGE', message)],
    details: { maxBytes: LIMITS.agent_output_max_bytes },
  });
}
