/**
 * Checks with the service that owns the operation whether a person could execute a request themselves: what they could
 * not send, they cannot approve, and of what is done by an operation that has no rule here they see nothing. Source:
 * docs/reference/agents.md#approvals.
 */

import type { RecordOperation } from '../../../lib/access/decide.ts';
import { holdsPermission, permissionDenied } from '../../../lib/access/system-permission.ts';
import type { Access } from '../../../lib/access/types.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { VIOLATIONS_MAX } from '../../../lib/errors/violation-list.ts';
import { parseJson } from '../../../lib/json/parse.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { accessOf } from '../callers.ts';
import type { AgentDeps } from '../deps.ts';
import type { ApprovalRow } from './approval.sql.ts';
import {
  bodyOf,
  carriedRow,
  fieldsSetBy,
  inputOf,
  permissionOf,
  recordQuestionOf,
  referencesSetBy,
  valuesSetBy,
} from './operations.ts';
import { type ApprovedPart, partsOf } from './parts.ts';

export interface Rights {
  /** Why the person could not execute the request themselves; null: they could. */
  readonly refusal: PlatformError | null;
  /** They may know what it is about. */
  readonly reads: boolean;
}

export async function rightsOf(
  deps: AgentDeps,
  request: RequestContext,
  access: Access,
  row: ApprovalRow,
): Promise<Rights> {
  const parts = partsOf(row);
  if (parts) return rightsOfParts(deps, request, access, parts);
  const needed = permissionOf(row);
  if (needed && !holdsPermission(access.system, needed)) return { refusal: permissionDenied(needed), reads: false };
  switch (carriedRow(row)?.changes?.kind) {
    case 'record':
      return recordRights(deps, request, access, row);
    case 'dashboard':
      return dashboardRights(deps, request, row);
    case 'configuration':
      return { refusal: deploymentRefusal(access, row), reads: true };
    case 'end':
      return { refusal: null, reads: true };
    default:
      return { refusal: undecidable(row), reads: false };
  }
}

/** Checks that an approver could make each change of a composite request. */
async function rightsOfParts(
  deps: AgentDeps,
  request: RequestContext,
  access: Access,
  parts: readonly ApprovedPart[],
): Promise<Rights> {
  let reads = true;
  let refusal: PlatformError | null = null;
  for (const { row } of parts.filter((part) => part.isChange)) {
    const rights = await rightsOf(deps, request, access, row);
    refusal ??= rights.refusal;
    reads &&= rights.reads;
  }
  return { refusal, reads };
}

const undecidable = ({ operationId }: ApprovalRow): PlatformError =>
  new PlatformError('RECORD_ACCESS_DENIED', `You could not execute this ${operationId} yourself.`);

/**
 * Only metadata knows whether a user holds the rights for each part of a plan: users with manageAccess always do.
 */
function deploymentRefusal({ system }: Access, { preview }: ApprovalRow): PlatformError | null {
  if (system.has('manageAccess') || (preview !== null && handsOutNothing(preview))) return null;
  return permissionDenied('manageAccess');
}

function handsOutNothing(preview: string): boolean {
  const plan = parseJson(preview, LIMITS.json_depth_max);
  return typeof plan === 'object' && plan !== null && 'handsOutRights' in plan && plan.handsOutRights === false;
}

async function dashboardRights(
  { checkDashboard }: AgentDeps,
  { requestId, tenantId, userId, clientId, deadline }: RequestContext,
  row: ApprovalRow,
): Promise<Rights> {
  const { refusal } = await checkDashboard({
    asker: { requestId, tenantId, userId, clientId, deadline },
    operationId: row.operationId,
    dashboardId: row.pathParameters['dashboardId'] ?? null,
    body: row.bodyOmitted ? null : bodyOf(row),
  });
  if (refusal === null) return { refusal, reads: true };
  const { code } = refusal;
  const isOwn = code === 'DASHBOARD_NOT_FOUND' || code === 'RECORD_ACCESS_DENIED';
  // Objects that are not there for the person look like any fault of the content.
  return { refusal: isOwn ? PlatformError.fromWire(refusal) : undecidable(row), reads: false };
}

async function recordRights(
  deps: AgentDeps,
  request: RequestContext,
  access: Access,
  row: ApprovalRow,
): Promise<Rights> {
  const question = recordQuestionOf(row);
  const object = question && ownEntry(access.objects, question.objectApiName)?.object;
  if (!object) return { refusal: undecidable(row), reads: false };
  const { tenantId, userId } = request;
  const fields = await fieldsOf(deps, request, row, question.objectApiName);
  const operations = fields.includes('ownerId') ? withOwner(question.operations) : question.operations;
  const references = referencesSetBy(row, object);
  const values = valuesSetBy(row);
  const input = inputOf(row);
  const answer = await deps.checkAccess({ ...question, operations, values, references, input, tenantId, userId });
  const refusal = answer.refusal && PlatformError.fromWire(answer.refusal);
  return {
    refusal: refusal ?? fieldRefusal(access, question.objectApiName, fields),
    // Whether they see a record that the path names by its id, also when it is deleted by now, is asked for all of
    // them.
    reads: answer.readsRecord || row.pathParameters['externalIdField'] === undefined,
  };
}

/** The fields that the request sets; of a body that was not kept, all that its sender could set. */
async function fieldsOf(
  deps: AgentDeps,
  { tenantId }: RequestContext,
  row: ApprovalRow,
  objectApiName: string,
): Promise<readonly string[]> {
  const fields = fieldsSetBy(row);
  if (fields) return fields;
  const sender = await deps.findUser(tenantId, row.userId);
  if (!sender) return [];
  const { objects } = accessOf(await deps.configurations.current(tenantId), sender);
  return Object.entries(ownEntry(objects, objectApiName)?.fields ?? {}).flatMap(([name, { edit }]) =>
    edit ? [name] : [],
  );
}

/** A change of owner needs a higher level of sharing than other changes. */
const withOwner = (operations: readonly RecordOperation[]): readonly RecordOperation[] =>
  operations.map((operation) => (operation === 'update' ? 'changeOwner' : operation));

/** 403 when the person could not set one of the fields; one that they cannot read is like one that does not exist. */
function fieldRefusal({ objects }: Access, objectApiName: string, fields: readonly string[]): PlatformError | null {
  const own = ownEntry(objects, objectApiName)?.fields ?? {};
  const denied = fields.filter((field) => ownEntry(own, field)?.edit !== true);
  if (denied.length === 0) return null;
  return new PlatformError('FIELD_PERMISSION_DENIED', 'The request sets fields that you may not edit.', {
    errors: denied
      .filter((field) => ownEntry(own, field)?.read === true)
      .slice(0, VIOLATIONS_MAX)
      .map((field) => violation('', 'FIELD_PERMISSION_DENIED', `You may not edit ${field}.`, { field })),
    details: { layer: 'fieldPermission' },
  });
}
