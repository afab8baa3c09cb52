/**
 * Calls under a run of an agent: agent admits each before it is forwarded and hears how it was answered. Where somebody
 * has to approve a mutation first, a dry run in the caller's name shows what it would do.
 * Source: docs/reference/agents.md#enforcement.
 */

import type { Admission, Admitted, AgentActions, JudgedOperation } from '../../../contracts/agent.ts';
import { READ_RECORD } from '../../../contracts/data/records.ts';
import { operationRow } from '../../../contracts/operations.ts';
import { approvalTooLarge } from '../../../lib/errors/approval.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { completeFingerprint } from '../../../lib/json/fingerprint.ts';
import { isObject, membersOf } from '../../../lib/json/objects.ts';
import { LIMITS } from '../../../lib/limits.ts';
import {
  belongsToRuns,
  type Operation,
  type OperationCall,
  type OperationReply,
  type PartCall,
} from '../../../lib/operation.ts';
import { relatedObjectsIn } from '../../../lib/query/conditions.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { type Call, expansionCost } from './call.ts';
import { toPlatformError } from './failures.ts';
import { isAgent } from './session.ts';

/** Calls to other services in the caller's name. */
export interface RunCalls {
  /** Throws the refusal of agent. */
  readonly admit: (x: Call, admission: Admission) => Promise<Admitted>;
  /** Not waited for. */
  readonly settle: (x: Call, stepId: string, status: number) => void;
  /** The dry run of the call. */
  readonly tryOut: (x: Call, call: OperationCall) => Promise<OperationReply>;
  /** The record that the call is about, as the caller sees it. */
  readonly read: (x: Call, call: OperationCall) => Promise<OperationReply>;
  /** Has people asked for an approval, which refuses the call. */
  readonly request: (x: Call, asked: AgentActions['agent.approvals.request']['params']) => Promise<never>;
}

/** The run that the call belongs to; null: none. Throws when an agent names none. */
export function runOf({ session, headers, route: { operation } }: Call): string | null {
  if (!session) return null;
  const runId = headers['x-agent-run-id'];
  if (operation.runs === 'refused' && runId !== undefined)
    throw new PlatformError('APPROVAL_ACTOR_NOT_HUMAN', 'Only a person can decide, outside of a run.');
  if (!belongsToRuns(operation)) return null;
  if (typeof runId === 'string') return runId.toLowerCase();
  if (!isAgent(session)) return null;
  throw new PlatformError(
    'AGENT_POLICY_DENIED',
    'Calls of agents belong to a run: create one, and send its runId in the header X-Agent-Run-Id.',
  );
}

/**
 * Asks agent for admission, and notes the run in the call. Answers the outcome of a call that was executed before under the same
 * key, else null. Throws the refusal of agent; APPROVAL_REQUIRED when people were asked.
 */
export async function enterRun(runs: RunCalls, x: Call, runId: string): Promise<OperationReply | null> {
  const call = callOf(x);
  const admission = admissionOf(x, call, runId);
  let admitted: Admitted;
  try {
    admitted = await runs.admit(x, admission);
  } catch (error) {
    // Callers leave no trace in a run that is not theirs.
    if (error instanceof PlatformError && error.code !== 'RUN_NOT_FOUND') x.refusedByRun = runId;
    const outcome = await outcomeOf(runs, x, call, error);
    if (outcome) return outcome;
    throw error;
  }
  const { stepId, dryRun, approvalId, approvalRequired, basis, deniedObjects } = admitted;
  if (admitted.asks) {
    const outcome = await askFor(runs, x, call, admission, admitted);
    if (outcome) return outcome;
  }
  const { fingerprint } = admission;
  const approval =
    approvalId === null || fingerprint === null
      ? null
      : { id: approvalId, fingerprint, ...(basis === undefined ? {} : { basis }) };
  x.run = { runId, stepId, dryRun, approvalRequired, approval, ...(deniedObjects ? { deniedObjects } : {}) };
  if (dryRun && admission.mutation && !x.route.operation.dryRun) {
    runs.settle(x, stepId, 403);
    throw new PlatformError(
      'AGENT_POLICY_DENIED',
      `The run is a dry run, and ${x.label} cannot be tried out: it was not carried out.`,
      { details: { runId } },
    );
  }
  return null;
}

function callOf({ asked, label }: Call): OperationCall {
  if (!asked) throw new Error(`The form of ${label} has not been read.`);
  return asked;
}

function admissionOf(x: Call, call: OperationCall, runId: string): Admission {
  const { operationId, risk, cost, mutation, agentApproval, requestBody, dryRun } = x.route.operation;
  const { ifMatch, expectedRevision, duplicateConfirmation, idempotencyKey } = call.headers;
  const named = {
    'if-match': ifMatch,
    'x-expected-revision': expectedRevision === undefined ? undefined : String(expectedRevision),
    'x-duplicate-confirmation': duplicateConfirmation,
  };
  const headers = Object.fromEntries(Object.entries(named).filter((entry): entry is [string, string] => !!entry[1]));
  const { checked } = x;
  const related = mutation
    ? []
    : relatedObjectsIn(call.query['filters'] ?? (isObject(call.body) && call.body['filters']));
  const lookedUp = checked ? lookupsOf(call) : [];
  return {
    runId,
    operationId,
    method: x.method,
    path: x.path,
    pathParameters: call.path,
    query: call.query,
    ...(x.expanded.length > 0 ? { expanded: x.expanded } : {}),
    ...(related.length > 0 ? { related } : {}),
    ...(lookedUp.length > 0 ? { lookedUp } : {}),
    ...(call.body === undefined || requestBody?.kind === 'raw' || requestBody?.kind === 'stream'
      ? {}
      : { body: call.body }),
    headers,
    fingerprint: mutation ? fingerprintOf(call) : null,
    idempotencyKey: mutation ? (idempotencyKey ?? null) : null,
    risk,
    cost:
      Math.max(checked?.cost ?? cost, x.costOfParts) +
      [x, ...x.parts].reduce((sum, one) => sum + expansionCost(one), 0),
    mutation,
    agentApproval,
    previewable: dryRun === true,
    ...(checked ? { checked: checkedCall(checked, call) } : {}),
    requestId: x.requestId,
    duplicateConfirmation: mutation && duplicateConfirmation !== undefined,
    ...(x.parts.length > 0
      ? { parts: x.parts.map((part, at) => partOf(part, runId, call.parts?.[at])), mutations: x.mutations }
      : {}),
  };
}

const partOf = (part: Call, runId: string, named?: PartCall): Admission => ({
  ...admissionOf(part, callOf(part), runId),
  ...(named ? { referenceId: named.referenceId } : {}),
});

/** References that a check gives by a key (`{"accountNumber": "…"}`): its verdict has the ids of what they name. */
const lookupsOf = ({ body }: OperationCall): string[] =>
  [isObject(body) && body['fields'], isObject(body) && body['input']]
    .filter(isObject)
    .flatMap((values) => Object.keys(values).filter((name) => isObject(values[name])));

/** The operation that a check tries out, as policies look at it. */
const checkedCall = ({ operationId, risk, agentApproval }: Operation, { body }: OperationCall): JudgedOperation => ({
  operationId,
  risk,
  agentApproval,
  duplicateConfirmation: isObject(body) && body['duplicateConfirmation'] !== undefined,
});

/** Of a body that its service parses, the bytes are covered: an approval is for these very bytes. */
function fingerprintOf({ fingerprint = '', body }: OperationCall): string {
  return body instanceof Uint8Array ? completeFingerprint(fingerprint, body) : fingerprint;
}

const isReplayed = ({ headers }: OperationReply): boolean => headers?.['Idempotency-Replayed'] === 'true';

/** The outcome of a mutation whose answer was lost, when its run has ended since; null: it has none. */
async function outcomeOf(
  runs: RunCalls,
  x: Call,
  call: OperationCall,
  refusal: unknown,
): Promise<OperationReply | null> {
  const { mutation, dryRun } = x.route.operation;
  if (!mutation || !dryRun || !(refusal instanceof PlatformError) || refusal.code !== 'RUN_NOT_ACTIVE') return null;
  // A dry run answers the outcome of the key, and changes nothing where there is none.
  const reply = await runs.tryOut(x, call).catch((error: unknown) => {
    if (error instanceof PlatformError && error.status < 500) return null;
    throw error;
  });
  return reply && isReplayed(reply) ? reply : null;
}

/**
 * Makes the dry run, and has people asked with its verdict. What it is refused for (an object that the caller does not
 * see, a permission, a record that has changed), or fails with, is the answer: no approver is asked, and the next attempt
 * begins anew. A reply: the key has an outcome already. null: the request changes nothing.
 */
async function askFor(
  runs: RunCalls,
  x: Call,
  call: OperationCall,
  admission: Admission,
  { stepId }: Admitted,
): Promise<OperationReply | null> {
  x.refusedByRun = admission.runId;
  try {
    // Decimals as text, which keeps all their digits.
    const tried = { ...call, ieee754Compatible: true };
    const [alone, reply] = await Promise.all([
      x.parts.length === 0 ? recordBefore(runs, x, call) : null,
      runs.tryOut(x, tried),
    ]);
    if (isReplayed(reply)) {
      runs.settle(x, stepId, reply.status ?? x.route.operation.response.status);
      return reply;
    }
    if (reply.changesNothing) return null;
    const verdict = contentOf(reply);
    if (x.parts.length > 0) refuseFailed(verdict);
    const before = x.parts.length === 0 ? alone : await recordsBefore(runs, x, call, verdict['results']);
    const preview = { ...verdict, approvalRequired: true, before };
    return await runs.request(x, {
      admission,
      stepId,
      preview,
      ...(reply.basis === undefined ? {} : { basis: reply.basis }),
    });
  } catch (error) {
    runs.settle(x, stepId, toPlatformError(error).error.status);
    throw error;
  }
}

/**
 * The records that the parts or rows change, in their order. Those that the call names by a key or a reference are named by
 * `results` of the dry run.
 */
function recordsBefore(runs: RunCalls, x: Call, call: OperationCall, results: unknown): Promise<(object | null)[]> {
  const found: readonly unknown[] = Array.isArray(results) ? results : [];
  const { objectApiName, records } = membersOf(call.body);
  const paths = call.parts
    ? call.parts.map((part) => (operationRow(part.call.operationId)?.mutation ? part.call.path : {}))
    : (Array.isArray(records) ? records : []).map((row) => ({
        objectApiName: String(objectApiName),
        ...(typeof membersOf(row)['id'] === 'string' ? { id: String(membersOf(row)['id']) } : {}),
      }));
  return Promise.all(
    paths.map((path, at) => {
      const { status, id, body } = membersOf(found[at]);
      const changed = id ?? membersOf(body)['id'];
      const isFound = status === 200 && typeof changed === 'string' && !isUuid(path['id']?.toLowerCase() ?? '');
      return recordBefore(runs, x, { path: isFound ? { ...path, id: changed } : path });
    }),
  );
}

/** Throws COMPOSITE_FAILED when the dry run refused a part: no approver is asked about a request that fails. */
function refuseFailed({ results }: Readonly<Record<string, unknown>>): void {
  const isFailed = (result: unknown): boolean => Number(membersOf(result)['status']) >= 400;
  if (Array.isArray(results) && results.some(isFailed))
    throw new PlatformError('COMPOSITE_FAILED', 'A part would fail, so no approval was requested.', {
      details: { results },
    });
}

/** The record that the call changes; null: it has none, or none that the caller can see. */
async function recordBefore(
  runs: RunCalls,
  x: Call,
  { path }: { readonly path: Readonly<Record<string, string>> },
): Promise<object | null> {
  const { objectApiName, id } = path;
  if (objectApiName === undefined || id === undefined) return null;
  const read: OperationCall = {
    operationId: READ_RECORD,
    path: { objectApiName, id },
    query: {},
    headers: {},
    ieee754Compatible: true,
  };
  try {
    return contentOf(await runs.read(x, read));
  } catch (error) {
    // A deleted record that is restored, or one that the dry run will refuse by itself.
    if (error instanceof PlatformError && error.status < 500) return null;
    throw error;
  }
}

/** The object that a reply holds. 413 for one that is too long to be shown: approvers must see all of it. */
function contentOf({ body }: OperationReply): Record<string, unknown> {
  const text = body instanceof Uint8Array ? Buffer.from(body).toString() : JSON.stringify(body ?? null);
  if (Buffer.byteLength(text) > LIMITS.agent_preview_max_bytes)
    throw approvalTooLarge('preview', LIMITS.agent_preview_max_bytes);
  const content: unknown = JSON.parse(text);
  return isObject(content) ? { ...content } : {};
}
