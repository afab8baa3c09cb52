/** How admitted calls ended, and what those that wait for a decision would do. */
import { LIMITS } from '../../../config/limits.ts';
import type { AgentActions } from '../../../contracts/agent.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { previewStatement, withdrawStatement } from '../approvals/approval.sql.ts';
import type { AgentDeps } from '../deps.ts';
import { settleStatement } from './admit.sql.ts';

type Params<Name extends keyof AgentActions> = AgentActions[Name]['params'];

export async function settleStep(
  { database }: AgentDeps,
  { tenantId }: RequestContext,
  { stepId, status, approvalId }: Params<'agent.steps.settle'>,
): Promise<null> {
  await database.shared('agent', tenantId, (tx) =>
    tx.query(settleStatement(tenantId, stepId, status, approvalId ?? null)),
  );
  return null;
}

export async function keepPreview(
  { database }: AgentDeps,
  { tenantId, userId, clientId }: RequestContext,
  { approvalId, preview }: Params<'agent.approvals.preview'>,
): Promise<null> {
  const text = JSON.stringify(preview);
  const kept = Buffer.byteLength(text) <= LIMITS.agent_preview_max_bytes ? text : JSON.stringify({ omitted: true });
  if (isUuid(approvalId))
    await database.shared('agent', tenantId, (tx) =>
      tx.query(previewStatement({ tenantId, approvalId, userId, clientId }, kept)),
    );
  return null;
}

export async function withdraw(
  { database }: AgentDeps,
  { tenantId, userId, clientId }: RequestContext,
  { approvalId }: Params<'agent.approvals.withdraw'>,
): Promise<null> {
  if (isUuid(approvalId))
    await database.shared('agent', tenantId, (tx) =>
      tx.query(withdrawStatement({ tenantId, approvalId, userId, clientId })),
    );
  return null;
}
