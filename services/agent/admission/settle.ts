/** How admitted calls ended. */
import type { AgentActions } from '../../../contracts/agent.ts';
import type { RequestContext } from '../../../lib/context.ts';
import type { AgentDeps } from '../deps.ts';
import { settleStatement } from './admit.sql.ts';

export async function settleStep(
  { database }: AgentDeps,
  { tenantId }: RequestContext,
  { stepId, status, approvalId }: AgentActions['agent.steps.settle']['params'],
): Promise<null> {
  await database.shared('agent', tenantId, (tx) =>
    tx.query(settleStatement(tenantId, stepId, status, approvalId ?? null)),
  );
  return null;
}
