/** Approvals, to those who decide and to those in whose name they were asked for. */
import type { Handler } from '../../../contracts/operations.ts';
import type { Access } from '../../../lib/access/types.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { accessOf, overseesAgents, requireActiveUser, requireScope } from '../callers.ts';
import type { AgentDeps } from '../deps.ts';
import { pageOf } from '../page.ts';
import { type ApprovalFilter, type ApprovalRow, approvalStatement, approvalsStatement } from './approval.sql.ts';
import { isApprover } from './approvers.ts';
import { presentApproval } from './present.ts';

export const approvalNotFound = (): PlatformError =>
  new PlatformError('APPROVAL_NOT_FOUND', 'There is no such approval.');

/** Whether a reader sees an approval. */
export type Sees = (row: ApprovalRow) => boolean;

/** Their own runs', for an agent those of its client; what they decide or could have decided, for people who approve. */
export function seesAs(request: RequestContext, access: Access, oversees: boolean): Sees {
  return (row) => {
    if (row.userId === request.userId && (!request.agent || row.clientId === request.clientId)) return true;
    return oversees && isApprover(row, access);
  };
}

async function readerOf(deps: AgentDeps, request: RequestContext): Promise<Sees> {
  const user = await requireActiveUser(deps.findUser, request);
  const snapshot = await deps.configurations.latest(request.tenantId);
  return seesAs(request, accessOf(snapshot, user), overseesAgents(request, user));
}

export const getApproval: Handler<'agent.approvals.get', AgentDeps> = async (deps, request, { path }) => {
  requireScope(request, ['agent:approve', 'agent:run']);
  const { tenantId } = request;
  const sees = await readerOf(deps, request);
  const row = isUuid(path.approvalId)
    ? await deps.database.shared('agent', tenantId, (tx) =>
        tx.first<ApprovalRow>(approvalStatement(tenantId, path.approvalId)),
      )
    : null;
  if (!row || !sees(row)) throw approvalNotFound();
  return { body: presentApproval(row) };
};

export const listApprovals: Handler<'agent.approvals.list', AgentDeps> = async (deps, request, { query }) => {
  const { tenantId } = request;
  const sees = await readerOf(deps, request);
  const status = query.status ?? null;
  return pageOf(
    deps,
    request,
    query,
    { name: 'agent.approvals', parameters: { status } },
    {
      rows: (before, take) =>
        deps.database.shared('agent', tenantId, async (tx) => {
          const seen: ApprovalRow[] = [];
          for (let last = before; ; ) {
            const filter: ApprovalFilter = { status, before: last, take };
            const found = await tx.all<ApprovalRow>(approvalsStatement(tenantId, filter));
            seen.push(...found.filter(sees));
            last = found.at(-1)?.approvalId ?? null;
            if (found.length < take || seen.length >= take) return seen.slice(0, take);
          }
        }),
      key: ({ approvalId }) => approvalId,
      present: presentApproval,
    },
  );
};
