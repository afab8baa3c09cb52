/** For which transitions and actions people would be asked. Source: docs/reference/transitions.md#the-list. */
import type { AgentActions } from '../../../contracts/agent.ts';
import { OPERATIONS } from '../../../contracts/operations.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { executesTransitions } from '../approvals/operations.ts';
import type { AgentDeps } from '../deps.ts';
import { evaluate, policiesOf } from './evaluate.ts';
import { judge } from './risk.ts';

const EXECUTION = OPERATIONS.find(({ operationId }) => executesTransitions(operationId));

export async function judgeTransitions(
  { configurations }: AgentDeps,
  { tenantId, clientId, objectApiName, keys }: AgentActions['agent.transitions.judge']['params'],
): Promise<string[]> {
  if (!EXECUTION) throw new PlatformError('INTERNAL_ERROR', 'No operation executes transitions.');
  const { operationId, risk, agentApproval } = EXECUTION;
  const snapshot = await configurations.current(tenantId);
  const policies = policiesOf(snapshot, clientId);
  return keys.filter((transitionKey) => {
    const call = { operationId, risk, pathParameters: { objectApiName, transitionKey } };
    const about = { operationId, agentApproval, objectApiName, duplicateConfirmation: false };
    return evaluate(policies, { ...about, ...judge(call, snapshot, false) }).decision === 'approve';
  });
}
