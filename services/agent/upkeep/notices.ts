/**
 * Mails and notifications to those who may decide about an approval. The row of the approval is the job, so that asking neither waits for
 * mails nor fails with them. Doing it twice does no harm: each of them gets one. Source: docs/reference/agents.md.
 */

import type { UserIdentity } from '../../../contracts/data.ts';
import { holdsPermission } from '../../../lib/access/system-permission.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { Snapshot } from '../../../lib/schema/snapshot.ts';
import {
  type ApprovalSummaryRow,
  type NoticedRow,
  noticedStatement,
  noticesStatement,
  tenantsWithNoticesStatement,
} from '../approvals/approval.sql.ts';
import { permissionOf } from '../approvals/operations.ts';
import { decides } from '../approvals/read.ts';
import { accessOf } from '../callers.ts';
import type { AgentDeps } from '../deps.ts';
import { time } from '../runs/present.ts';

const TENANTS_PER_ROUND = 1_000;
const APPROVALS_PER_TENANT = 50;
const USERS_PER_CALL = 500;
const USERS_MAX = 10_000;

/** One round over all tenants with approvals that were not mailed yet. */
export async function sendNotices(
  deps: AgentDeps,
  signal: AbortSignal,
  failed: (tenantId: string, error: unknown) => void,
): Promise<void> {
  const due = await deps.database.login((tx) =>
    tx.all<{ tenantId: string }>(tenantsWithNoticesStatement(TENANTS_PER_ROUND)),
  );
  for (const { tenantId } of due) {
    if (signal.aborted) return;
    await noticesOf(deps, tenantId, signal).catch((error: unknown) => failed(tenantId, error));
  }
}

async function noticesOf(deps: AgentDeps, tenantId: string, signal: AbortSignal): Promise<void> {
  const { database } = deps;
  const rows = await database.shared('agent', tenantId, (tx) =>
    tx.all<NoticedRow>(noticesStatement(tenantId, APPROVALS_PER_TENANT)),
  );
  if (rows.length === 0) return;
  const snapshot = await deps.configurations.current(tenantId);
  for (const row of rows) {
    if (signal.aborted) return;
    if (row.status === 'PENDING') await sendNotice(deps, tenantId, snapshot, row);
    await database.shared('agent', tenantId, (tx) => tx.query(noticedStatement(tenantId, row)));
  }
}

async function sendNotice(deps: AgentDeps, tenantId: string, snapshot: Snapshot, row: NoticedRow): Promise<void> {
  const userIds = await decidersOf(deps, tenantId, snapshot, row);
  if (userIds.length === 0) return;
  const asking = await deps.findUser(tenantId, row.userId);
  const { approvalId, clientId, agentKey, operationId, summary, expiresAt } = row;
  await deps.askApprovers({
    tenantId,
    approvalId,
    userIds,
    request: {
      clientId,
      agentKey,
      inNameOf: asking?.displayName ?? '',
      operationId,
      summary,
      expiresAt: time(expiresAt),
    },
  });
  await deps.notify({
    tenantId,
    notice: {
      type: 'agentApprovalRequested',
      recipientIds: userIds,
      data: { agent: row.agentKey },
      actor: { userId: row.userId, agentRunId: row.runId },
      action: { kind: 'approval', id: row.approvalId },
      dedupeKey: row.approvalId,
    },
  });
}

/** Bounded. Of an escalated approval, those who could not decide before. */
async function decidersOf(deps: AgentDeps, tenantId: string, snapshot: Snapshot, row: NoticedRow): Promise<string[]> {
  const found: string[] = [];
  const before = row.notice === 'escalated' ? { ...row, escalatedAt: null } : null;
  let after: string | null = null;
  for (let seen = 0; seen < USERS_MAX && found.length < LIMITS.agent_approval_mails_max; seen += USERS_PER_CALL) {
    const question = { tenantId, systemPermission: 'approveAgentActions', after, take: USERS_PER_CALL } as const;
    const { users, next }: Awaited<ReturnType<AgentDeps['usersHolding']>> = await deps.usersHolding(question);
    for (const user of users)
      if (mayDecide(row, user, snapshot) && !(before && mayDecide(before, user, snapshot))) found.push(user.id);
    after = next;
    if (after === null) break;
  }
  return found.slice(0, LIMITS.agent_approval_mails_max);
}

function mayDecide(row: ApprovalSummaryRow, user: UserIdentity, snapshot: Snapshot): boolean {
  if (!user.apiEnabled || (user.id === row.userId && !row.allowSelfApproval)) return false;
  const access = accessOf(snapshot, user);
  const needed = permissionOf(row);
  return decides(row, access) && (!needed || holdsPermission(access.system, needed));
}
