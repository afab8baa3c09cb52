/** Asks people to approve a request of an agent: what they are shown, and what the agent hears. */

import type { Admission } from '../../../contracts/agent.ts';
import { approvalTooLarge } from '../../../lib/errors/approval.ts';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { Snapshot } from '../../../lib/schema/snapshot.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import type { AdmittedCall } from '../admission/admit.sql.ts';
import { meaningOf } from '../admission/meaning.ts';
import type { AgentDeps } from '../deps.ts';
import { writeEvents } from '../events.ts';
import type { ApprovalTerms } from '../policy/evaluate.ts';
import { time } from '../runs/present.ts';
import {
  insertApprovalStatement,
  type KnownApprovalRow,
  type NewApproval,
  type OpenApprovals,
  pendingStatement,
} from './approval.sql.ts';
import { isChange, partsOfCall } from './parts.ts';

/** Identifies duplicate requests. */
export type Identity = Pick<NewApproval, 'fingerprint' | 'meaning' | 'idempotencyKey'>;

/** @throws PlatformError 500 for a call that is no mutation, which no policy sends to people. */
export function identityOf(call: Admission, snapshot: Snapshot, preview: object | null): Identity {
  const { fingerprint, idempotencyKey, operationId } = call;
  if (fingerprint !== null && idempotencyKey !== null)
    return { fingerprint, meaning: meaningOf(call, snapshot, preview), idempotencyKey };
  throw new PlatformError('INTERNAL_ERROR', `${operationId} cannot be approved: it is no mutation.`);
}

/** Subject of an approval. */
export interface Asked {
  readonly identity: Identity;
  /** As it was judged with its target. */
  readonly risk: Admission['risk'];
  readonly terms: ApprovalTerms;
  /** JSON; null: the operation cannot be tried out. */
  readonly preview: string | null;
  /** The effects of the dry run; null: it was refused for its content. */
  readonly basis: string | null;
}

/** Asks people, and answers what the call is refused with. `step`: says of the call that it waits for the approval. */
export async function createApproval(
  deps: AgentDeps,
  tx: Tx,
  admission: AdmittedCall,
  asked: Asked,
  step: (approvalId: string) => Statement,
): Promise<PlatformError> {
  const approval = await newApproval(deps, admission, asked);
  const { expiresAt } = await tx.one<{ expiresAt: string }>(insertApprovalStatement(approval));
  const { approvalId, runId, operationId, fingerprint } = approval;
  await tx.query(step(approvalId));
  await writeEvents(tx, admission.request, [
    { type: 'agent.approval.requested', data: { approvalId, runId, operationId } },
    { type: 'agent.run.waitingApproval', data: { runId, approvalId } },
  ]);
  return approvalRefusal('APPROVAL_REQUIRED', 'A person must approve this request before it is executed.', {
    approvalId,
    runId,
    status: 'PENDING',
    fingerprint: `sha256:${fingerprint}`,
    expiresAt: time(expiresAt),
  });
}

const approvalRefusal = (code: ErrorCode, message: string, details: Record<string, unknown>): PlatformError =>
  new PlatformError(code, message, { details });

const MESSAGES = {
  APPROVAL_PENDING: 'The request still waits for a decision.',
  APPROVAL_REJECTED: 'The request was rejected, which holds for 24 hours: it is not executed.',
  APPROVAL_EXPIRED: 'The approval has expired; send the request with another Idempotency-Key to ask again.',
} as const;

/** Why a call is not executed that people were asked about before. */
export function standingRefusal(
  code: keyof typeof MESSAGES,
  { call }: AdmittedCall,
  { approvalId, expiresAt, comment }: KnownApprovalRow,
): PlatformError {
  const details = { approvalId, runId: call.runId, fingerprint: `sha256:${call.fingerprint}` };
  if (code === 'APPROVAL_REJECTED') return approvalRefusal(code, MESSAGES[code], { ...details, comment });
  return approvalRefusal(code, MESSAGES[code], { ...details, expiresAt: time(expiresAt) });
}

/** People are shown the whole body, or are not asked. null: it can be shown. */
export function sizeRefusal({ call }: AdmittedCall): PlatformError | null {
  const max = LIMITS.agent_request_max_bytes;
  const shown = partsOfCall(call) ?? call.body;
  return shown !== undefined && Buffer.byteLength(JSON.stringify(shown)) > max ? approvalTooLarge('body', max) : null;
}

/** Bounded: no approver can decide about thousands of requests. null: there is room for another. */
export async function roomRefusal(tx: Tx, { request, call }: AdmittedCall): Promise<PlatformError | null> {
  const { tenantId, userId } = request;
  const { ofRun, ofUser, ofTenant } = await tx.one<OpenApprovals>(pendingStatement(tenantId, userId, call.runId));
  const max = LIMITS.agent_approvals_of_run_max;
  if (ofRun >= max)
    return new PlatformError('AGENT_BUDGET_EXCEEDED', `The run already has ${max} pending approvals, the maximum.`, {
      details: { budget: 'maxPendingApprovals', used: ofRun, max },
    });
  const full = (whose: string, most: number): PlatformError =>
    new PlatformError(
      'CONCURRENCY_LIMIT_EXCEEDED',
      `The agents of ${whose} already have ${most} pending approvals, the maximum.`,
      {
        retryAfterSeconds: 60,
        details: { max: most },
      },
    );
  if (ofUser >= LIMITS.agent_approvals_of_user_max) return full('the user', LIMITS.agent_approvals_of_user_max);
  if (ofTenant >= LIMITS.agent_approvals_of_tenant_max) return full('the tenant', LIMITS.agent_approvals_of_tenant_max);
  return null;
}

async function newApproval(
  { findUser }: AgentDeps,
  { request, call }: AdmittedCall,
  { identity, risk, terms, preview, basis }: Asked,
): Promise<NewApproval> {
  const { tenantId, userId } = request;
  const asksManager = [...terms.approvers, ...terms.escalateTo].some(({ manager }) => manager);
  const managerId = asksManager ? ((await findUser(tenantId, userId))?.managerId ?? null) : null;
  // From here on the people who decide are ids, whatever becomes of names and managers.
  const parts = partsOfCall(call);
  const named = (list: ApprovalTerms['approvers']): NewApproval['approvers'] =>
    list.map(({ manager, ...one }) => (manager ? { manager: managerId } : one));
  return {
    ...identity,
    tenantId,
    approvalId: uuidv7(),
    runId: call.runId,
    userId,
    operationId: call.operationId,
    method: call.method,
    path: call.path,
    pathParameters: call.pathParameters,
    risk,
    summary: parts ? `${parts.filter(isChange).length} changes in one request` : summaryOf(call),
    query: call.query,
    headers: call.headers,
    body: call.body === undefined ? null : JSON.stringify(call.body),
    bodyOmitted: false,
    parts: parts && JSON.stringify(parts),
    preview,
    basis,
    policy: terms.policy,
    requiredApprovals: terms.requiredApprovals,
    approvers: named(terms.approvers),
    allowSelfApproval: terms.allowSelfApproval,
    escalateAfterSeconds: terms.escalateAfterSeconds,
    escalateTo: named(terms.escalateTo),
    expiresInSeconds: terms.expiresInSeconds,
  };
}

/** `DELETE Invoice__c`, `execute send on Invoice__c`, else the operation. */
function summaryOf({ method, operationId, pathParameters }: Admission): string {
  const { objectApiName, transitionKey } = pathParameters;
  if (objectApiName === undefined) return operationId;
  return transitionKey === undefined ? `${method} ${objectApiName}` : `Execute ${transitionKey} on ${objectApiName}`;
}
