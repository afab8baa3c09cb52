/** Decides about a request of an agent: one person at a time. Source: docs/reference/agents.md#approvals. */

import { CLI_CLIENT_ID } from '../../../contracts/auth.ts';
import type { Handler, OperationInput } from '../../../contracts/operations.ts';
import { stepUpDemanded } from '../../../contracts/step-up.ts';
import { permissionDenied } from '../../../lib/access/system-permission.ts';
import type { Access } from '../../../lib/access/types.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { on } from '../../../mixins/models/sequelize.ts';
import { mutate } from '../../../mixins/mutation/mutate.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import { accessOf, requireActiveUser } from '../callers.ts';
import type { AgentDeps } from '../deps.ts';
import { DecisionModel } from '../models/decision.ts';
import { type ApprovalRow, approvalStatement, decideStatement, lockApprovalStatement } from './approval.sql.ts';
import { needsStepUp } from './operations.ts';
import { partsOf } from './parts.ts';
import { presentApproval, type Reader } from './present.ts';
import { approvalNotFound, decides, readerOf } from './read.ts';
import { rightsOf } from './rights.ts';

type Decision = OperationInput<'agent.approvals.decide'>['body'];

export const decideApproval: Handler<'agent.approvals.decide', AgentDeps> = async (deps, request, call) => {
  const { tenantId } = request;
  const user = await requireActiveUser(deps.findUser, request);
  const access = accessOf(await deps.configurations.current(tenantId), user);
  const { approvalId } = call.path;
  // The person's rights are checked before any lock; the subject of a request never changes.
  const judged = await judge(deps, request, access, approvalId);
  return mutate(deps.database, request, call, {
    role: { service: 'agent' },
    work: async (unit) => {
      if (!access.system.has('approveAgentActions')) throw permissionDenied('approveAgentActions');
      requireComment(call.body);
      if (!judged) throw approvalNotFound();
      const { tx } = unit;
      await tx.query(lockApprovalStatement(tenantId, approvalId));
      const row = await tx.one<ApprovalRow>(approvalStatement(tenantId, approvalId));
      requirePerson(request);
      requireOtherEyes(row, request);
      requireOtherClient(row, request);
      if (!decides(row, access)) throw approvalNotFound();
      if (judged.refusal) throw judged.refusal;
      requireOpen(row, request);
      if (call.body.decision === 'approve') {
        // As for the execution: who approves makes it happen.
        const steps = partsOf(row)?.map((part) => part.row) ?? [row];
        if (request.lacksStepUp && steps.some(needsStepUp)) throw stepUpDemanded();
      }
      if (call.body.fingerprint !== `sha256:${row.fingerprint}`) throw otherFingerprint();
      await store(unit, row, call.body);
      const decided = await tx.one<ApprovalRow>(approvalStatement(tenantId, approvalId));
      return { status: 201, body: presentApproval(decided, judged.reader) };
    },
  });
};

interface Judged {
  readonly refusal: PlatformError | null;
  readonly reader: Reader;
}

/** The person's view of the request and their right to decide; null: they see no such approval. */
async function judge(
  deps: AgentDeps,
  request: RequestContext,
  access: Access,
  approvalId: string,
): Promise<Judged | null> {
  const { tenantId, userId } = request;
  if (!isUuid(approvalId)) return null;
  const row = await deps.database.shared('agent', tenantId, (tx) =>
    tx.first<ApprovalRow>(approvalStatement(tenantId, approvalId)),
  );
  if (!row || !(row.userId === userId || decides(row, access))) return null;
  const rights = await rightsOf(deps, request, access, row);
  return { refusal: rights.refusal, reader: await readerOf(deps, request, access, row, rights) };
}

/** An agent learns why. */
function requireComment({ decision, comment }: Decision): void {
  if (decision === 'approve' || (comment ?? '').trim() !== '') return;
  const message = 'comment is required with the decision reject.';
  throw new PlatformError('PARAMETER_REQUIRED', message, {
    errors: [violation('/comment', 'PARAMETER_REQUIRED', message)],
  });
}

function requirePerson({ person, agentRunId }: RequestContext): void {
  if (person && agentRunId === null) return;
  throw new PlatformError('APPROVAL_ACTOR_NOT_HUMAN', 'Only a person can decide: sign in as one, outside of a run.');
}

function requireOtherEyes({ userId, allowSelfApproval }: ApprovalRow, request: RequestContext): void {
  if (userId !== request.userId || allowSelfApproval) return;
  throw new PlatformError('APPROVAL_SELF_NOT_ALLOWED', 'The agent acts in your name: another user must decide.');
}

/**
 * The program that asks can hold the tokens of several people, so that its client decides about nothing of its own,
 * whichever user has signed in there. On the command line, a client that all users share, two people are two programs.
 */
function requireOtherClient({ userId, clientId }: ApprovalRow, request: RequestContext): void {
  if (clientId !== request.clientId) return;
  if (clientId === CLI_CLIENT_ID && userId !== request.userId) return;
  throw new PlatformError('APPROVAL_ACTOR_NOT_HUMAN', 'The requesting client cannot decide: use another one.');
}

function requireOpen({ approvalId, status, decisions }: ApprovalRow, { userId }: RequestContext): void {
  if (status === 'EXPIRED')
    throw new PlatformError('APPROVAL_EXPIRED', 'The approval has expired.', { details: { approvalId } });
  if (status === 'PENDING' && !decisions.some((one) => one.userId === userId)) return;
  const message = status === 'PENDING' ? 'You have decided already.' : `The approval is ${status} already.`;
  throw new PlatformError('APPROVAL_ALREADY_DECIDED', message, { details: { status } });
}

const otherFingerprint = (): PlatformError =>
  new PlatformError('APPROVAL_FINGERPRINT_MISMATCH', '`fingerprint` does not match the approval: read it again.');

/** The last approval that is needed, and any rejection, settles it. */
async function store(unit: Unit, row: ApprovalRow, { decision, comment }: Decision): Promise<void> {
  const { tx, request } = unit;
  const { approvalId, runId, requiredApprovals, decisions } = row;
  const { tenantId, userId } = request;
  await DecisionModel.create({ tenantId, approvalId, userId, decision, comment: comment ?? null }, on(tx));
  const status =
    decision === 'reject' ? 'REJECTED' : decisions.length + 1 >= requiredApprovals ? 'APPROVED' : 'PENDING';
  if (status !== 'PENDING')
    await tx.query(decideStatement(tenantId, approvalId, status, LIMITS.agent_approved_seconds));
  unit.audit({
    aboutRunId: runId,
    changes: { approvalId: { from: approvalId, to: approvalId }, decision: { from: null, to: decision } },
  });
  unit.emit({ type: 'agent.approval.decided', data: { approvalId, runId, decision, status } });
}
