/**
 * Admits a call to a run of the caller: counts it, asks the policies, and hands out the approval that it needs, or has
 * people asked for one. One transaction decides, whatever else happens to the run at the same moment. Source:
 * docs/reference/agents.md#what-happens-to-a-call.
 */

import canonicalize from 'canonicalize';
import type { Admission, Admitted, AgentActions, JudgedOperation } from '../../../contracts/agent.ts';
import { READ_RECORD } from '../../../contracts/data/records.ts';
import type { UserIdentity } from '../../../contracts/data.ts';
import { operationRow } from '../../../contracts/operations.ts';
import type { Access } from '../../../lib/access/types.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { approvalTooLarge } from '../../../lib/errors/approval.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { membersOf } from '../../../lib/json/objects.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { Operation } from '../../../lib/operation.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { AgentPolicyMeta, Snapshot } from '../../../lib/schema/snapshot.ts';
import { isUuid, uuidv7 } from '../../../lib/values/ids.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import { expireApprovalStatement, type KnownApprovalRow, knownApprovalStatement } from '../approvals/approval.sql.ts';
import {
  type Asked,
  createApproval,
  type Identity,
  identityOf,
  roomRefusal,
  sizeRefusal,
  standingRefusal,
} from '../approvals/ask.ts';
import { partsOfCall, unaskable } from '../approvals/parts.ts';
import { accessOf, ownRuns } from '../callers.ts';
import type { AgentDeps } from '../deps.ts';
import { endChanges, writeEvents, writeNotes } from '../events.ts';
import {
  type ApprovalTerms,
  type DayBudget,
  dayBudgetOf,
  evaluate,
  policiesOf,
  type Verdict,
} from '../policy/evaluate.ts';
import { fieldsGiven, objectsReferredByInput, sendsInput } from '../policy/references.ts';
import { judge } from '../policy/risk.ts';
import { type EndedRun, endRunsStatement } from '../runs/end.sql.ts';
import { endedRefusal, runNotFound } from '../runs/refusals.ts';
import { type LockedRun, lockRunStatement } from '../runs/run.sql.ts';
import {
  type AdmittedCall,
  admittedBeforeStatement,
  askedStepStatement,
  type Call,
  countStatement,
  lockDayStatement,
  mutationsOf,
  refusedStepStatement,
} from './admit.sql.ts';
import { withCarriedOut } from './carried.ts';
import { budgetRefusal, type Charge, dayRefusal, type Standing, standingOf, type UsedDay } from './decide.ts';

/** The transaction of a refusal commits its writes, so it returns instead of throwing. */
type Outcome = Admitted | PlatformError;

export async function admit(deps: AgentDeps, request: RequestContext, asked: Admission): Promise<Admitted> {
  if (!isUuid(asked.runId)) throw runNotFound();
  const call = await withCarriedOut(deps, request, asked);
  const admission = { request, call, stepId: uuidv7() };
  const readsOthers = [call, ...(call.parts ?? [])].some(
    (one) =>
      one.expanded || one.related || one.lookedUp || carriedBy(one) || fieldsGiven(one).length > 0 || sendsInput(one),
  );
  const caller = readsOthers ? await deps.findUser(request.tenantId, request.userId) : null;
  const [outcome, denied] = await deps.configurations.transaction(
    request.tenantId,
    async (tx, snapshot): Promise<[Outcome, readonly string[]]> => [
      await decide(deps, tx, verdictOf(snapshot, admission, caller), { snapshot, admission }),
      deniedObjects(snapshot, admission),
    ],
  );
  if (outcome instanceof PlatformError) throw outcome;
  return denied.length > 0 ? { ...outcome, deniedObjects: denied } : outcome;
}

/**
 * Objects on which the policies deny a check, or a read whose path names none: what they come upon is known to their
 * service alone.
 */
function deniedObjects(snapshot: Snapshot, { request, call, stepId }: AdmittedCall): readonly string[] {
  if (call.parts)
    return [...new Set(call.parts.flatMap((part) => deniedObjects(snapshot, { request, call: part, stepId })))];
  if (call.mutation || (!call.checked && call.pathParameters['objectApiName'] !== undefined)) return [];
  const policies = policiesOf(snapshot, request.clientId);
  if (!policies.some(({ rules }) => rules.some(({ decision }) => decision === 'deny'))) return [];
  return Object.keys(snapshot.objects).filter(
    (objectApiName) => evaluate(policies, { ...call, objectApiName }).decision === 'deny',
  );
}

/**
 * Asks people to approve a call that was tried out. What counts is decided again: meanwhile the same request may have
 * asked, the run may have ended, and the policies may have changed.
 */
export async function requestApproval(
  deps: AgentDeps,
  request: RequestContext,
  { admission: asked, stepId, preview, basis }: AgentActions['agent.approvals.request']['params'],
): Promise<never> {
  if (!isUuid(asked.runId) || !isUuid(stepId)) throw runNotFound();
  const call = await withCarriedOut(deps, request, asked);
  const admission = { request, call, stepId };
  const text = JSON.stringify(preview);
  if (Buffer.byteLength(text) > LIMITS.agent_preview_max_bytes)
    throw approvalTooLarge('preview', LIMITS.agent_preview_max_bytes);
  const tried = { preview: text, basis: basis ?? null };
  throw await deps.configurations.transaction(request.tenantId, async (tx, snapshot): Promise<PlatformError> => {
    const run = await openRun(tx, admission, dayBudgetOf(policiesOf(snapshot, request.clientId)));
    if (run instanceof PlatformError) return run;
    const verdict = verdictOf(snapshot, admission, null);
    if (verdict.decision === 'deny') return denial(admission, verdict.policy);
    if (verdict.decision === 'allow') return contention();
    const identity = identityOf(call, snapshot, preview);
    const { risk } = judge(call, snapshot, false);
    const standing = await standingOfCall(tx, admission, identity);
    if (standing.next === 'refuse') return standing.refusal;
    if (standing.next === 'execute') return contention();
    return (
      (await roomRefusal(tx, admission)) ??
      (await createApproval(deps, tx, admission, { identity, risk, terms: verdict.terms, ...tried }, (approvalId) =>
        askedStepStatement(admission, approvalId),
      ))
    );
  });
}

/** `caller`: who reads other objects than that of the path; null: the call reads no others. */
function verdictOf(snapshot: Snapshot, admission: AdmittedCall, caller: UserIdentity | null): Verdict {
  const { request, call } = admission;
  const policies = policiesOf(snapshot, request.clientId);
  if (call.parts) return verdictOfParts(snapshot, admission, call.parts, caller);
  const objectApiName = call.pathParameters['objectApiName'] ?? null;
  const judged = (
    { operationId, agentApproval, duplicateConfirmation }: JudgedOperation,
    asChecked: boolean,
  ): Verdict =>
    evaluate(policies, {
      ...judge(call, snapshot, asChecked),
      operationId,
      agentApproval,
      objectApiName,
      duplicateConfirmation,
    });
  const on = (object: string): Verdict => evaluate(policies, { ...call, objectApiName: object });
  const itself = judged(call, false);
  // A denied call has no dry run either, and a call that needs approval would wait.
  const alone = call.checked && itself.decision !== 'deny' ? judged(call.checked, true) : itself;
  const carried = carriedBy(call);
  const verdict = carried ? stricter(alone, judgedAsCarried(policies, call, carried, snapshot)) : alone;
  if (verdict.decision === 'deny' || !caller || objectApiName === null) return verdict;
  // An object that must not be read directly is not read through a reference, a filter or a lookup either.
  const access = accessOf(snapshot, caller);
  const others = [
    ...referencedObjects(access, objectApiName, [...(call.expanded ?? []), ...(call.lookedUp ?? [])]),
    ...(call.related ?? []).filter((name) => Object.hasOwn(access.objects, name)),
  ];
  const named = [
    ...referencedObjects(access, objectApiName, fieldsGiven(call)),
    ...objectsReferredByInput(call, snapshot).filter((name) => Object.hasOwn(access.objects, name)),
  ];
  const reading = carried
    ? [...others, ...referencedObjects(access, objectApiName, fieldNames(access, objectApiName))]
    : [];
  const denials = [
    ...others.map(on),
    ...[...named, ...reading].map((object) => evaluate(policies, { ...READ_OF_RECORD, objectApiName: object })),
  ];
  return denials.find(({ decision }) => decision === 'deny') ?? verdict;
}

/** A composite request does what its parts do, and is denied where a policy denies it by name. */
function verdictOfParts(
  snapshot: Snapshot,
  { request, call, stepId }: AdmittedCall,
  parts: readonly Admission[],
  caller: UserIdentity | null,
): Verdict {
  const itself = evaluate(policiesOf(snapshot, request.clientId), { ...call, objectApiName: null });
  const verdicts = parts.map((part) => verdictOf(snapshot, { request, call: part, stepId }, caller));
  if (itself.decision === 'deny') return itself;
  const waiting = verdicts.filter((verdict) => verdict.decision === 'approve');
  const [first, ...others] = waiting;
  return (
    verdicts.find((verdict) => verdict.decision === 'deny') ??
    (first && { ...first, differs: others.some(({ terms }) => !isSame(terms, first.terms)) }) ?? { decision: 'allow' }
  );
}

/** Two parts are decided by the same people in the same way. */
const isSame = (one: ApprovalTerms, other: ApprovalTerms): boolean => canonicalize(one) === canonicalize(other);

/** The operation on records that the work carries out to which the call belongs. */
const carriedBy = ({ pathParameters }: Admission): Operation | undefined =>
  operationRow(pathParameters['carriesOut'] ?? '');

/** As the operation on records: whatever belongs to the work is denied like it, and its start waits like it. */
function judgedAsCarried(
  policies: readonly AgentPolicyMeta[],
  call: Admission,
  { operationId, risk, agentApproval }: Operation,
  snapshot: Snapshot,
): Verdict {
  const { pathParameters } = call;
  const judgement = judge({ operationId, risk, pathParameters, body: undefined }, snapshot, false);
  const objectApiName = pathParameters['objectApiName'] ?? null;
  const verdict = evaluate(policies, {
    ...judgement,
    operationId,
    agentApproval,
    objectApiName,
    duplicateConfirmation: false,
  });
  return verdict.decision === 'approve' && call.risk !== 'high' ? { decision: 'allow' } : verdict;
}

const stricter = (one: Verdict, other: Verdict): Verdict =>
  one.decision === 'deny' || other.decision === 'allow'
    ? one
    : other.decision === 'deny' || one.decision === 'allow'
      ? other
      : one;

/** Rows of files may refer to records by any of them. */
const fieldNames = ({ objects }: Access, objectApiName: string): string[] =>
  Object.keys(ownEntry(objects, objectApiName)?.fields ?? {});

/** A caller denied reading an object's records cannot reference them either. */
const READ_OF_RECORD = {
  ...operationRow(READ_RECORD),
  duplicateConfirmation: false,
};

/** Targets of the references that the caller can read: the others look like unknown fields. */
function referencedObjects({ objects }: Access, objectApiName: string, references: readonly string[]): string[] {
  const from = ownEntry(objects, objectApiName);
  if (!from) return [];
  return references
    .filter((name) => ownEntry(from.fields, name)?.read)
    .flatMap((name) => from.object.fields[name]?.referenceTo ?? [])
    .filter((name) => Object.hasOwn(objects, name));
}

async function decide(
  deps: AgentDeps,
  tx: Tx,
  verdict: Verdict,
  { snapshot, admission }: { snapshot: Snapshot; admission: AdmittedCall },
): Promise<Outcome> {
  const { call } = admission;
  const day = dayBudgetOf(policiesOf(snapshot, admission.request.clientId));
  if (verdict.decision === 'allow') return count(tx, admission, day);
  const run = await openRun(tx, admission, day);
  if (run instanceof PlatformError) return run;
  if (verdict.decision === 'deny') return deny(tx, admission, verdict.policy);
  // A dry run changes nothing that would need approval.
  if (run.dryRun || call.checked || (call.parts && membersOf(call.body)['checkOnly'] === true)) {
    const counted = await count(tx, admission, day);
    return counted instanceof PlatformError ? counted : { ...counted, approvalRequired: true };
  }
  const parts = partsOfCall(call);
  const reason = verdict.differs ? 'its parts need different approvers' : parts && unaskable(call, parts);
  if (reason) {
    await tx.query(refusedStepStatement(admission, 403, null));
    return new PlatformError(
      'AGENT_POLICY_DENIED',
      `A part of the request needs an approval, and ${reason}: send that part by itself.`,
      { details: { policyApiName: verdict.terms.policy, operationId: call.operationId } },
    );
  }
  return askFor(deps, tx, admission, day, {
    identity: identityOf(call, snapshot, null),
    risk: judge(call, snapshot, false).risk,
    terms: verdict.terms,
    preview: null,
    basis: null,
  });
}

/** Executes the call as far as this service is concerned. */
async function count(
  tx: Tx,
  admission: AdmittedCall,
  day: DayBudget,
  approval: Extract<Standing, { next: 'execute' }> | null = null,
): Promise<Outcome> {
  const approvalId = approval?.approvalId ?? null;
  const { request, call } = admission;
  // Calls with one key at the same moment come one after the other, so that one of them is charged.
  const [, counted] = await Promise.all([
    call.idempotencyKey === null ? null : tx.query(lockRunStatement(request.tenantId, call.runId, ownRuns(request))),
    tx.first<{ dryRun: boolean }>(countStatement(admission, approvalId, day)),
  ]);
  if (counted) {
    const basis = approval?.basis ?? null;
    const admitted = { stepId: admission.stepId, approvalId, ...(basis === null ? {} : { basis }) };
    return { ...admitted, dryRun: counted.dryRun, approvalRequired: false, asks: false };
  }
  const run = await openRun(tx, admission, day);
  return run instanceof PlatformError ? run : contention();
}

/** Another call was completed between the two statements. */
const contention = (): PlatformError =>
  new PlatformError('WRITE_CONTENTION', 'Other calls of the run are in progress; try again.', { retryAfterSeconds: 1 });

/** The run, which stays as it is until the transaction ends; or why it lets no such call through. */
async function openRun(tx: Tx, { request, call }: Call, max: DayBudget): Promise<LockedRun | PlatformError> {
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
  const ended = endedRefusal(run);
  if (ended) return ended;
  const charge = await chargeOf(tx, { request, call });
  const day = await tx.first<UsedDay>(lockDayStatement({ request, call }));
  return budgetRefusal(run, charge) ?? dayRefusal(day ?? null, charge, max) ?? run;
}

async function chargeOf(tx: Tx, asked: Call): Promise<Charge> {
  const { cost, mutation } = asked.call;
  if (!mutation) return { cost, mutations: 0 };
  const { yes } = await tx.one<{ yes: boolean }>(admittedBeforeStatement(asked));
  return yes ? { cost: 0, mutations: 0 } : { cost, mutations: mutationsOf(asked.call) };
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

async function askFor(
  deps: AgentDeps,
  tx: Tx,
  admission: AdmittedCall,
  day: DayBudget,
  asked: Asked,
): Promise<Outcome> {
  const standing = await standingOfCall(tx, admission, asked.identity);
  if (standing.next === 'refuse') {
    await tx.query(refusedStepStatement(admission, standing.refusal.status, standing.approvalId));
    return standing.refusal;
  }
  if (standing.next === 'execute') return count(tx, admission, day, standing);
  const full = sizeRefusal(admission) ?? (await roomRefusal(tx, admission));
  if (full) return full;
  if (!admission.call.previewable)
    return createApproval(deps, tx, admission, asked, (id) => refusedStepStatement(admission, 403, id));
  // It is tried out first, which costs what a call costs, and is no change.
  const tried = await count(tx, { ...admission, call: { ...admission.call, mutation: false } }, day);
  return tried instanceof PlatformError ? tried : { ...tried, asks: true };
}

type StandingOfCall =
  | Extract<Standing, { next: 'ask' | 'execute' }>
  | { readonly next: 'refuse'; readonly refusal: PlatformError; readonly approvalId: string };

/** Decides by the earlier approval whether the call is executed, requested, or refused. */
async function standingOfCall(tx: Tx, admission: AdmittedCall, identity: Identity): Promise<StandingOfCall> {
  const { request, call } = admission;
  const known = await tx.first<KnownApprovalRow>(knownApprovalStatement(request, call.runId, identity));
  const standing = standingOf(known);
  if (standing.next === 'execute') return standing;
  if (known && !known.live && (await tx.first(expireApprovalStatement(request.tenantId, known.approvalId))))
    await writeEvents(tx, request, [
      { type: 'agent.approval.expired', data: { approvalId: known.approvalId, runId: call.runId } },
    ]);
  if (!known || standing.next !== 'refuse') return { next: 'ask' };
  return { next: 'refuse', refusal: standingRefusal(standing.code, admission, known), approvalId: known.approvalId };
}
