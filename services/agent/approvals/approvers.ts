/** Approvers of an agent's request: pure. Source: docs/reference/agents.md#approvals. */
import type { Access } from '../../../lib/access/types.ts';
import type { ApprovalRow, Approver } from './approval.sql.ts';

/** True when the user is an approver; escalation adds more approvers. */
export function isApprover(
  { approvers, escalateTo, escalatedAt }: Pick<ApprovalRow, 'approvers' | 'escalateTo' | 'escalatedAt'>,
  access: Access,
): boolean {
  if (approvers.length === 0 || approvers.some((one) => isOne(one, access))) return true;
  return escalatedAt !== null && escalateTo.some((one) => isOne(one, access));
}

function isOne({ role, group, user, manager }: Approver, { principal, memberships }: Access): boolean {
  if (role !== undefined) return memberships.roles.includes(role);
  if (group !== undefined) return memberships.groups.has(group);
  if (user !== undefined) return principal.userId === user;
  return manager === principal.userId;
}
