/** Approvals as the API shows them to a reader. */

import type { AgentApproval } from '../../../contracts/agent.ts';
import type { RecordName } from '../../../contracts/data.ts';
import type { OperationOutput } from '../../../contracts/operations.ts';
import type { Access } from '../../../lib/access/types.ts';
import { parseJson } from '../../../lib/json/parse.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { time, timeOrNull } from '../runs/present.ts';
import { recordInPath, type Sees, shownPath } from '../sight.ts';
import type { ApprovalRow, ApprovalSummaryRow, Approver } from './approval.sql.ts';
import { duplicatesIn, HIDDEN, hideFields, hidePreview, recordsIn } from './hide.ts';
import { bodyHasFields, recordQuestionOf } from './operations.ts';

/** Inputs that decide a reader's view. */
export interface Reader {
  readonly access: Access;
  /** The request was sent in their name. */
  readonly isOwn: boolean;
  readonly sees: Sees;
  /** They may know what the request is about, as far as that is asked: in lists it is not. */
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

function shownBody(row: ApprovalRow, { access, isOwn, reads }: Reader, body: unknown): unknown {
  if (!isOwn && !reads) return HIDDEN;
  if (!bodyHasFields(row)) return body;
  const object = ownEntry(access.objects, row.pathParameters['objectApiName'] ?? '');
  return object ? hideFields(body, object) : HIDDEN;
}

function shownPreview(row: ApprovalRow, { access, sees, reads }: Reader, preview: unknown): object {
  if (typeof preview !== 'object' || preview === null) return { hidden: true };
  const question = recordQuestionOf(row);
  if (question) return hidePreview({ ...preview }, question.objectApiName, { access, sees, readsRecord: reads });
  return reads ? preview : { hidden: true };
}

/** The record that the request is about: that of its path, or the one that its dry run has found by another key. */
export function recordsOf(row: ApprovalRow): RecordName[] {
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
