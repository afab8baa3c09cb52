/** Approvals as the API shows them. */

import { LIMITS } from '../../../config/limits.ts';
import type { AgentApproval } from '../../../contracts/agent.ts';
import { parseJson } from '../../../lib/json/parse.ts';
import { time, timeOrNull } from '../runs/present.ts';
import type { ApprovalRow, Approver } from './approval.sql.ts';

export const presentApproval = (row: ApprovalRow): AgentApproval => ({
  approvalId: row.approvalId,
  runId: row.runId,
  status: row.status,
  operationId: row.operationId,
  method: row.method,
  path: row.path,
  risk: row.risk,
  summary: row.summary,
  request: {
    query: row.query,
    headers: row.headers,
    body: row.body === null ? null : parseJson(row.body, LIMITS.json_depth_max),
    bodyOmitted: row.bodyOmitted,
  },
  preview: row.preview === null ? null : (parseJson(row.preview, LIMITS.json_depth_max) as object),
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

function presentApprover({ role, group, user, manager }: Approver): AgentApproval['approvers'][number] {
  if (role !== undefined) return { kind: 'role', id: role };
  if (group !== undefined) return { kind: 'group', id: group };
  if (user !== undefined) return { kind: 'user', id: user };
  return { kind: 'manager', id: manager ?? null };
}
