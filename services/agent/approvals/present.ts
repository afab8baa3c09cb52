/** Approvals as the API shows them to a reader. */
import { LIMITS } from '../../../config/limits.ts';
import type { AgentApproval } from '../../../contracts/agent.ts';
import type { RecordName } from '../../../contracts/data.ts';
import type { OperationOutput } from '../../../contracts/operations.ts';
import { holdsPermission } from '../../../lib/access/system-permission.ts';
import type { Access } from '../../../lib/access/types.ts';
import { parseJson } from '../../../lib/json/parse.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { time, timeOrNull } from '../runs/present.ts';
import { recordInPath, type Sees, shownPath } from '../sight.ts';
import type { ApprovalRow, ApprovalSummaryRow, Approver } from './approval.sql.ts';
import { HIDDEN, hideFields, hidePreview, recordsIn } from './hide.ts';
import { bodyHasFields, permissionOf, recordQuestionOf } from './operations.ts';

/** What decides about what a reader is shown. */
export interface Reader {
  readonly access: Access;
  /** The request was sent in their name. */
  readonly isOwn: boolean;
  readonly sees: Sees;
}

export const presentSummary = (
  row: ApprovalSummaryRow,
  { access, isOwn, sees }: Reader,
): OperationOutput<'agent.approvals.list'>['records'][number] => ({
  approvalId: row.approvalId,
  runId: row.runId,
  status: row.status,
  operationId: row.operationId,
  method: row.method,
  path: isOwn ? row.path : shownPath(row, access, sees),
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

/** Of an operation that needs a system permission as a whole, the content is for those who hold it. */
const seesContent = (row: ApprovalRow, { access }: Reader): boolean => {
  const needed = permissionOf(row);
  return !needed || holdsPermission(access.system, needed);
};

function shownBody(row: ApprovalRow, reader: Reader, body: unknown): unknown {
  if (!seesContent(row, reader)) return HIDDEN;
  const question = recordQuestionOf(row);
  if (!question) return body;
  const object = ownEntry(reader.access.objects, question.objectApiName);
  if (!object || !(reader.isOwn || readsRecord(row, reader))) return HIDDEN;
  return bodyHasFields(row) ? hideFields(body, object) : body;
}

function shownPreview(row: ApprovalRow, reader: Reader, preview: unknown): object {
  if (typeof preview !== 'object' || preview === null || !seesContent(row, reader)) return { hidden: true };
  const question = recordQuestionOf(row);
  if (!question) return preview;
  const { access, sees } = reader;
  return hidePreview({ ...preview }, question.objectApiName, { access, sees, readsRecord: readsRecord(row, reader) });
}

/** Whether the reader sees the record that the request is about, or there is none yet. */
function readsRecord(row: ApprovalRow, { sees }: Reader): boolean {
  return recordsOf(row).every(sees);
}

/** The record that the request is about: that of its path, or the one that its dry run has found by another key. */
function recordsOf(row: ApprovalRow): RecordName[] {
  const named = recordInPath(row);
  if (named) return [named];
  if (row.operationId !== 'data.records.upsert') return [];
  return changedBy(row).filter(({ objectApiName }) => objectApiName === row.pathParameters['objectApiName']);
}

const changedBy = ({ preview }: ApprovalRow): RecordName[] =>
  preview === null ? [] : recordsIn(parseJson(preview, LIMITS.json_depth_max));

/** All records that an approval names. */
export const recordsNamedBy = (row: ApprovalRow): RecordName[] => [...recordsOf(row), ...changedBy(row)];

function presentApprover({ role, group, user, manager }: Approver): AgentApproval['approvers'][number] {
  if (role !== undefined) return { kind: 'role', id: role };
  if (group !== undefined) return { kind: 'group', id: group };
  if (user !== undefined) return { kind: 'user', id: user };
  return { kind: 'manager', id: manager ?? null };
}
