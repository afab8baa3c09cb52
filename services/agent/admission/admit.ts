/**
 * Admits a call to a run of the caller: counts it, asks the policies, and hands out the approval that it needs, or has
 * people asked for one. One transaction decides, whatever else happens to the run at the same moment. Source:
 * docs/reference/agents.md#what-happens-to-a-call.
 */
import { LIMITS } from '../../../config/limits.ts';
import type { Admission, Admitted, AgentActions } from '../../../contracts/agent.ts';
import type { RequestContext } from '../../../lib/context.ts';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { Snapshot } from '../../../lib/schema/snapshot.ts';
import { isUuid, uuidv7 } from '../../../lib/values/ids.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import {
  expireApprovalStatement,
  insertApprovalStatement,
  type KnownApprovalRow,
  knownApprovalStatement,
  type NewApproval,
  type OpenApprovals,
  outdateApprovalStatement,
  pendingStatement,
} from '../approvals/approval.sql.ts';
import { referencesIn } from '../approvals/operations.ts';
import { ownRuns } from '../callers.ts';
import type { AgentDeps } from '../deps.ts';
import { type Events, endChanges, writeEvents, writeNotes } from '../events.ts';
import { type ApprovalTerms, evaluate, policiesOf } from '../policy/evaluate.ts';
import { type EndedRun, endRunsStatement } from '../runs/end.sql.ts';
import { time } from '../runs/present.ts';
import { endedRefusal, runNotFound } from '../runs/refusals.ts';
import { type LockedRun, lockRunStatement } from '../runs/run.sql.ts';
import {
  type AdmittedCall,
  admittedBeforeStatement,
  askedStepStatement,
  type Call,
  countStatement,
  refusedStepStatement,
} from './admit.sql.ts';
import { budgetRefusal, type Charge, type Standing, standingOf } from './decide.ts';
import { meaningOf } from './meaning.ts';

/** What a transaction that refuses has written is kept, so that it answers instead of throwing. */
type Outcome = Admitted | PlatformError;

export async function admit(deps: AgentDeps, request: RequestContext, call: Admission): Promise<Admitted> {
  if (!isUuid(call.runId)) throw runNotFound();
  const admission = { request, call, stepId: uuidv7() };
  const outcome = await deps.configurations.transaction(request.tenantId, (tx, snapshot) =>
    decide(deps, tx, snapshot, admission),
  );
  if (outcome instanceof PlatformError) throw outcome;
  return outcome;
}

/**
 * Asks people to approve a call that was tried out. What counts is decided again: meanwhile the same request may have asked,
 * the run may have ended, and the policies may have changed.
 */
export async function requestApproval(
  deps: AgentDeps,
  request: RequestContext,
  { admission: call, stepId, preview, basis }: AgentActions['agent.approvals.request']['params'],
): Promise<never> {
  if (!isUuid(call.runId) || !isUuid(stepId)) throw runNotFound();
  const admission = { request, call, stepId };
  const text = JSON.stringify(preview);
  const kept = Buffer.byteLength(text) <= LIMITS.agent_preview_max_bytes ? text : JSON.stringify({ omitted: true });
  const tried = { preview: kept, basis: basis ?? null };
  throw await deps.configurations.transaction(request.tenantId, async (tx, snapshot): Promise<PlatformError> => {
    const run = await openRun(tx, admission);
    if (run instanceof PlatformError) return run;
    const verdict = verdictOf(snapshot, admission);
    if (verdict.decision === 'deny') return denial(admission, verdict.policy);
    if (verdict.decision === 'allow') return contention();
    const identity = identityOf(call, snapshot, preview);
    const standing = await standingOfCall(tx, admission, identity);
    if (standing instanceof PlatformError) return standing;
    if (standing.next === 'execute') {
      const outdated = await tx.first(outdateApprovalStatement(request.tenantId, standing.approvalId, tried.basis));
      if (!outdated) return contention();
    }
    return (
      (await requireRoom(tx, admission)) ??
      (await createApproval(deps, tx, admission, { identity, terms: verdict.terms, ...tried }, (approvalId) =>
        askedStepStatement(admission, approvalId),
      ))
    );
  });
}

const verdictOf = (snapshot: Snapshot, { request, call }: AdmittedCall): ReturnType<typeof evaluate> =>
  evaluate(policiesOf(snapshot, request.clientId), {
    operationId: call.operationId,
    risk: call.risk,
    agentApproval: call.agentApproval,
    objectApiName: call.pathParameters['objectApiName'] ?? null,
    duplicateConfirmation: call.duplicateConfirmation,
  });

async function decide(deps: AgentDeps, tx: Tx, snapshot: Snapshot, admission: AdmittedCall): Promise<Outcome> {
  const { call } = admission;
  const verdict = verdictOf(snapshot, admission);
  if (verdict.decision === 'allow') return count(tx, admission);
  const run = await openRun(tx, admission);
  if (run instanceof PlatformError) return run;
  if (verdict.decision === 'deny') return deny(tx, admission, verdict.policy);
  // What is tried out changes nothing that anybody would have to approve.
  if (run.dryRun || call.checkOnly) {
    const counted = await count(tx, admission);
    return counted instanceof PlatformError ? counted : { ...counted, approvalRequired: true };
  }
  return askFor(deps, tx, admission, {
    identity: identityOf(call, snapshot, null),
    terms: verdict.terms,
    preview: null,
    basis: null,
  });
}

/** Executes the call as far as this service is concerned. */
async function count(
  tx: Tx,
  admission: AdmittedCall,
  approval: Extract<Standing, { next: 'execute' }> | null = null,
): Promise<Outcome> {
  const approvalId = approval?.approvalId ?? null;
  const counted = await tx.first<{ dryRun: boolean }>(countStatement(admission, approvalId));
  if (counted) {
    const basis = approval?.basis ?? null;
    const admitted = { stepId: admission.stepId, approvalId, ...(basis === null ? {} : { basis }) };
    return { ...admitted, dryRun: counted.dryRun, approvalRequired: false, asks: false };
  }
  const run = await openRun(tx, admission);
  return run instanceof PlatformError ? run : contention();
}

/** Another call was completed between the two statements. */
const contention = (): PlatformError =>
  new PlatformError('WRITE_CONTENTION', 'Other calls of the run are in progress; try again.', { retryAfterSeconds: 1 });

/** The run, which stays as it is until the transaction ends; or why it lets no such call through. */
async function openRun(tx: Tx, { request, call }: Call): Promise<LockedRun | PlatformError> {
  const { tenantId } = request;
  const run = await tx.first<LockedRun>(lockRunStatement(tenantId, call.runId, ownRuns(request)));
  if (!run) return runNotFound();
  if (run.status === 'RUNNING' && !run.live) {
    const { approvalIds } = await tx.one<EndedRun>(endRunsStatement(tenantId, [call.runId], 'EXPIRED'));
    const changes = endChanges(call.runId, 'EXPIRED', approvalIds);
    await writeNotes(tx, tenantId, [{ runId: call.runId, operationId: 'agent.runs.expire', changes }]);
    await writeEvents(tx, request, [
      { type: 'agent.run.expired', data: { runId: call.runId, agentKey: run.agentKey } },
    ]);
  }
  return endedRefusal(run) ?? budgetRefusal(run, await chargeOf(tx, { request, call })) ?? run;
}

async function chargeOf(tx: Tx, asked: Call): Promise<Charge> {
  const { cost, mutation } = asked.call;
  if (!mutation) return { cost, mutations: 0 };
  const { yes } = await tx.one<{ yes: boolean }>(admittedBeforeStatement(asked));
  return yes ? { cost: 0, mutations: 0 } : { cost, mutations: 1 };
}

async function deny(tx: Tx, admission: AdmittedCall, policy: string): Promise<Outcome> {
  await tx.query(refusedStepStatement(admission, 403, null));
  return denial(admission, policy);
}

function denial({ call: { operationId } }: AdmittedCall, policy: string): PlatformError {
  return new PlatformError('AGENT_POLICY_DENIED', `The agent policy ${policy} denies ${operationId}.`, {
    details: { policyApiName: policy, operationId },
  });
}

async function askFor(deps: AgentDeps, tx: Tx, admission: AdmittedCall, asked: Asked): Promise<Outcome> {
  const standing = await standingOfCall(tx, admission, asked.identity);
  if (standing instanceof PlatformError) return standing;
  if (standing.next === 'execute') return count(tx, admission, standing);
  const full = await requireRoom(tx, admission);
  if (full) return full;
  if (!admission.call.previewable)
    return createApproval(deps, tx, admission, asked, (id) => refusedStepStatement(admission, 403, id));
  // It is tried out first, which costs what a call costs, and is no change.
  const tried = await count(tx, { ...admission, call: { ...admission.call, mutation: false } });
  return tried instanceof PlatformError ? tried : { ...tried, asks: true };
}

/** Whether the call is executed or asked for; or what it is refused with. */
async function standingOfCall(
  tx: Tx,
  admission: AdmittedCall,
  identity: Identity,
): Promise<Extract<Standing, { next: 'ask' | 'execute' }> | PlatformError> {
  const { request, call } = admission;
  const known = await tx.first<KnownApprovalRow>(knownApprovalStatement(request.tenantId, call.runId, identity));
  const standing = standingOf(known);
  if (standing.next === 'execute') return standing;
  if (known && !known.live && (await tx.first(expireApprovalStatement(request.tenantId, known.approvalId))))
    await writeEvents(tx, request, [
      { type: 'agent.approval.expired', data: { approvalId: known.approvalId, runId: call.runId } },
    ]);
  return known && standing.next === 'refuse' ? standingRefusal(standing.code, admission, known) : { next: 'ask' };
}

/** What makes requests the same one. */
type Identity = Pick<NewApproval, 'fingerprint' | 'meaning' | 'idempotencyKey'>;

function identityOf(call: Admission, snapshot: Snapshot, preview: object | null): Identity {
  const { fingerprint, idempotencyKey, operationId } = call;
  if (fingerprint !== null && idempotencyKey !== null)
    return { fingerprint, meaning: meaningOf(call, snapshot, preview), idempotencyKey };
  throw new PlatformError('INTERNAL_ERROR', `${operationId} cannot be approved: it is no mutation.`);
}

/** What people are asked about. */
interface Asked {
  readonly identity: Identity;
  readonly terms: ApprovalTerms;
  /** JSON; null: the operation cannot be tried out. */
  readonly preview: string | null;
  /** What the dry run of an upsert has found. */
  readonly basis: string | null;
}

/** `step`: says of the call that it waits for the approval. */
async function createApproval(
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
  const events: Events = [{ type: 'agent.approval.requested', data: { approvalId, runId, operationId } }];
  await writeEvents(tx, admission.request, [
    ...events,
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
  APPROVAL_REJECTED: 'The request was rejected; it is not executed in this run.',
  APPROVAL_EXPIRED: 'The approval has expired; send the request with another Idempotency-Key to ask again.',
} as const;

function standingRefusal(
  code: keyof typeof MESSAGES,
  { call }: AdmittedCall,
  { approvalId, expiresAt, comment }: KnownApprovalRow,
): PlatformError {
  const details = { approvalId, runId: call.runId, fingerprint: `sha256:${call.fingerprint}` };
  if (code === 'APPROVAL_REJECTED') return approvalRefusal(code, MESSAGES[code], { ...details, comment });
  return approvalRefusal(code, MESSAGES[code], { ...details, expiresAt: time(expiresAt) });
}

/** What waits for people is bounded: nobody can decide about thousands of requests. */
async function requireRoom(tx: Tx, { request, call }: AdmittedCall): Promise<PlatformError | null> {
  const { ofRun, ofTenant } = await tx.one<OpenApprovals>(pendingStatement(request.tenantId, call.runId));
  const max = LIMITS.agent_approvals_of_run_max;
  if (ofRun >= max)
    return new PlatformError('AGENT_BUDGET_EXCEEDED', `${max} requests of the run wait for a decision already.`, {
      details: { budget: 'maxPendingApprovals', used: ofRun, max },
    });
  if (ofTenant < LIMITS.agent_approvals_of_tenant_max) return null;
  return new PlatformError('CONCURRENCY_LIMIT_EXCEEDED', 'Too many requests of agents wait for a decision.', {
    retryAfterSeconds: 60,
    details: { max: LIMITS.agent_approvals_of_tenant_max },
  });
}

async function newApproval(
  { findUser }: AgentDeps,
  { request, call }: AdmittedCall,
  { identity, terms, preview, basis }: Asked,
): Promise<NewApproval> {
  const { tenantId, userId } = request;
  const asksManager = [...terms.approvers, ...terms.escalateTo].some(({ manager }) => manager);
  const managerId = asksManager ? ((await findUser(tenantId, userId))?.managerId ?? null) : null;
  const named = (list: ApprovalTerms['approvers']): NewApproval['approvers'] =>
    list.map(({ manager, ...one }) => (manager ? { manager: managerId } : one));
  const body = call.body === undefined ? null : JSON.stringify(call.body);
  const isKept = body !== null && Buffer.byteLength(body) <= LIMITS.agent_request_max_bytes;
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
    risk: call.risk,
    summary: summaryOf(call),
    query: call.query,
    headers: call.headers,
    body: isKept || body === null ? body : JSON.stringify(referencesIn(call.body)),
    bodyOmitted: body !== null && !isKept,
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
