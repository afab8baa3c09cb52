/** Approvals as the API shows them to a reader. */

import type { AgentApproval } from '../../../contracts/agent.ts';
import type { RecordName } from '../../../contracts/data.ts';
import type { OperationOutput } from '../../../contracts/operations.ts';
import type { Access } from '../../../lib/access/types.ts';
import { membersOf } from '../../../lib/json/objects.ts';
import { parseJson } from '../../../lib/json/parse.ts';
import { hasReference } from '../../../lib/json/references.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { time, timeOrNull } from '../runs/present.ts';
import { recordInPath, type Sees, shownPath } from '../sight.ts';
import type { ApprovalRow, ApprovalSummaryRow, Approver } from './approval.sql.ts';
import { duplicatesIn, HIDDEN, hideEffects, hideFields, hidePreview, recordsIn } from './hide.ts';
import { bodyHasFields, bodyOf, recordQuestionOf } from './operations.ts';
import { type ApprovedPart, partsOf } from './parts.ts';

/** A reader of approvals, and what they may see. */
export interface Reader {
  readonly access: Access;
  /** The request was sent in their name. */
  readonly isOwn: boolean;
  readonly sees: Sees;
  /** They may read the record that the request is about. Lists do not ask for it. */
  readonly reads: boolean;
}

export const presentSummary = (
  row: ApprovalSummaryRow,
  { access, isOwn, sees, reads }: Reader,
): OperationOutput<'agent.approvals.list'>['records'][number] => ({
  approvalId: row.approvalId,
  runId: row.runId,
  status: row.status,
  operationId: row.operationId,
  method: row.method,
  path: isOwn ? row.path : shownPath(row, access, { sees, reads }),
  risk: row.risk,
  summary: row.summary,
  fingerprint: `sha256:${row.fingerprint}`,
  requestedAt: time(row.requestedAt),
  expiresAt: time(row.expiresAt),
  policyApiName: row.policy,
  requiredApprovals: row.requiredApprovals,
  approvers: row.approvers.map(presentApprover),
  escalatedAt: timeOrNull(row.escalatedAt),
  decisions: row.decisions.map((one) => ({ ...one, decidedAt: time(one.decidedAt) })),
  consumedAt: timeOrNull(row.consumedAt),
  consumedRequestId: row.consumedRequestId,
});

export const presentApproval = (row: ApprovalRow, reader: Reader): AgentApproval => ({
  ...presentSummary(row, reader),
  approvers: row.approvers.map(presentApprover),
  decisions: row.decisions.map((one) => ({ ...one, decidedAt: time(one.decidedAt) })),
  request: {
    query: row.query,
    headers: row.headers,
    body:
      row.body === null || row.bodyOmitted ? null : shownBody(row, reader, parseJson(row.body, LIMITS.json_depth_max)),
    bodyOmitted: row.bodyOmitted,
  },
  preview: row.preview === null ? null : shownPreview(row, reader, parseJson(row.preview, LIMITS.json_depth_max)),
});

function shownBody(row: ApprovalRow, reader: Reader, body: unknown): unknown {
  const { access, isOwn, reads } = reader;
  if (!isOwn && !reads) return HIDDEN;
  const parts = partsOf(row);
  if (parts) return { ...membersOf(body), ...shownParts(parts, reader) };
  if (!bodyHasFields(row)) return body;
  const object = ownEntry(access.objects, row.pathParameters['objectApiName'] ?? '');
  return object ? hideFields(body, object) : HIDDEN;
}

/** The requests or rows of a composite request, as they were sent. */
function shownParts(parts: readonly ApprovedPart[], reader: Reader): object {
  const isRow = parts.every(({ sent }) => sent.referenceId === null);
  const shown = parts.map(({ sent, row, isChange }) => {
    const { referenceId, method, operationId, query, headers, body, pathParameters } = sent;
    // Approvers see neither the result of a read nor its filters.
    const content = isChange || reader.isOwn || body === null ? shownBody(row, reader, body) : HIDDEN;
    if (isRow)
      return { ...(pathParameters['id'] === undefined ? {} : { id: pathParameters['id'] }), headers, fields: content };
    const isSeen: Sees = (record) => hasReference(record.id) || reader.sees(record);
    const path = reader.isOwn
      ? sent.path
      : shownPath({ operationId, path: sent.path }, reader.access, { ...reader, sees: isSeen });
    return { referenceId, method, path, query: reader.isOwn ? query : HIDDEN, headers, body: content };
  });
  if (!isRow) return { requests: shown };
  const { objectApiName = '', externalIdField } = parts[0]?.sent.pathParameters ?? {};
  const fields = ownEntry(reader.access.objects, objectApiName)?.fields ?? {};
  const hidesKey = externalIdField !== undefined && ownEntry(fields, externalIdField)?.read !== true;
  return { records: shown, ...(hidesKey ? { externalIdField: HIDDEN } : {}) };
}

/** The preview of each part, and the effects of all. Of a read only the status is shown: its result belongs to the agent. */
function shownResults(parts: readonly ApprovedPart[], reader: Reader, effects: unknown): object {
  const { access, sees } = reader;
  const shown = parts.map(({ sent, row, isChange, result, before }) => {
    const { status, body, id } = result;
    if (!isChange) return { referenceId: sent.referenceId, status };
    const { objectApiName = '' } = row.pathParameters;
    const object = ownEntry(access.objects, objectApiName);
    const hidden = (value: unknown): unknown => (reader.reads && object ? hideFields(value ?? null, object) : HIDDEN);
    if (sent.referenceId !== null)
      return { referenceId: sent.referenceId, status, before: hidden(before), record: hidden(body) };
    const isSeen = typeof id === 'string' && sees({ objectApiName, id });
    const after = bodyHasFields(row) ? { ...membersOf(before), ...bodyOf(row) } : null;
    return { id: isSeen ? id : null, status, before: hidden(before), record: hidden(after) };
  });
  return { approvalRequired: true, parts: shown, effects: hideEffects(effects ?? [], access, sees) };
}

function shownPreview(row: ApprovalRow, reader: Reader, preview: unknown): object {
  const { access, sees, reads } = reader;
  if (typeof preview !== 'object' || preview === null) return { hidden: true };
  const parts = partsOf(row);
  if (parts) return shownResults(parts, reader, membersOf(preview)['effects']);
  const question = recordQuestionOf(row);
  if (question) return hidePreview({ ...preview }, question.objectApiName, { access, sees, readsRecord: reads });
  return reads ? preview : { hidden: true };
}

/** Records that the request is about: those of its parts, that of its path, or the one that its dry run found by an external id. */
export function recordsOf(row: ApprovalRow): RecordName[] {
  const parts = partsOf(row);
  if (parts)
    return parts.flatMap((part) => {
      const { objectApiName, id } = part.row.pathParameters;
      return part.isChange && objectApiName !== undefined && id !== undefined ? [{ objectApiName, id }] : [];
    });
  const named = recordInPath(row);
  if (named) return [named];
  if (row.pathParameters['externalIdField'] === undefined) return [];
  return changedBy(row).filter(({ objectApiName }) => objectApiName === row.pathParameters['objectApiName']);
}

const changedBy = ({ preview }: ApprovalRow): RecordName[] =>
  preview === null ? [] : recordsIn(parseJson(preview, LIMITS.json_depth_max));

/** All records that an approval names. */
export const recordsNamedBy = (row: ApprovalRow): RecordName[] => [
  ...recordsOf(row),
  ...changedBy(row),
  ...(row.preview === null ? [] : duplicatesIn(parseJson(row.preview, LIMITS.json_depth_max))),
];

function presentApprover({ role, group, user, manager }: Approver): AgentApproval['approvers'][number] {
  if (role !== undefined) return { kind: 'role', id: role };
  if (group !== undefined) return { kind: 'group', id: group };
  if (user !== undefined) return { kind: 'user', id: user };
  return { kind: 'manager', id: manager ?? null };
}
