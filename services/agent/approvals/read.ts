/**
 * Approvals, to those who decide and to those in whose name they were asked for. Source:
 * docs/reference/agents.md#approvals.
 */

import type { Handler } from '../../../contracts/operations.ts';
import type { Access } from '../../../lib/access/types.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { listPage } from '../../../lib/query/list-page.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { sealFor } from '../../../lib/values/sealed.ts';
import { accessOf, overseesAgents, requireActiveUser, visibleRuns } from '../callers.ts';
import type { AgentDeps } from '../deps.ts';
import type { Sight } from '../runs/run.sql.ts';
import { recordInPath, sightOf } from '../sight.ts';
import { type ApprovalRow, type ApprovalSummaryRow, approvalStatement, approvalsStatement } from './approval.sql.ts';
import { isApprover } from './approvers.ts';
import { presentApproval, presentSummary, type Reader, recordsNamedBy, recordsOf } from './present.ts';
import { type Rights, rightsOf } from './rights.ts';

export const approvalNotFound = (): PlatformError =>
  new PlatformError('APPROVAL_NOT_FOUND', 'There is no such approval.');

/** True when it was requested in the reader's name; an agent sees those of its own client. */
const isOwn = (row: ApprovalSummaryRow, { userId, agent, clientId }: RequestContext): boolean =>
  row.userId === userId && (!agent || row.clientId === clientId);

/** True when the reader is an approver; an approver must be able to read the object. */
export function decides(row: ApprovalSummaryRow, access: Access): boolean {
  const { objectApiName } = row.pathParameters;
  if (objectApiName !== undefined && !ownEntry(access.objects, objectApiName)) return false;
  return isApprover(row, access);
}

interface Caller {
  readonly access: Access;
  /** Beyond this nothing is seen; within it, `sees` decides about each. */
  readonly sight: Sight;
  readonly sees: (row: ApprovalSummaryRow) => boolean;
}

async function callerOf(deps: AgentDeps, request: RequestContext): Promise<Caller> {
  const user = await requireActiveUser(deps.findUser, request);
  const access = accessOf(await deps.configurations.current(request.tenantId), user);
  const oversees = overseesAgents(request, user);
  const sight = visibleRuns(request, user);
  return { access, sight, sees: (row) => isOwn(row, request) || (oversees && decides(row, access)) };
}

export const getApproval: Handler<'agent.approvals.get', AgentDeps> = async (deps, request, { path }) => {
  const { tenantId } = request;
  const { access, sees } = await callerOf(deps, request);
  const row = isUuid(path.approvalId)
    ? await deps.database.shared('agent', tenantId, (tx) =>
        tx.first<ApprovalRow>(approvalStatement(tenantId, path.approvalId)),
      )
    : null;
  if (!row || !sees(row)) throw approvalNotFound();
  const rights = await rightsOf(deps, request, access, row);
  return { body: presentApproval(row, await readerOf(deps, request, access, row, rights)) };
};

/** A reader's view of an approval. */
export async function readerOf(
  deps: AgentDeps,
  request: RequestContext,
  access: Access,
  row: ApprovalRow,
  { reads }: Rights,
): Promise<Reader> {
  const sees = await sightOf(deps, request, recordsNamedBy(row));
  return { access, isOwn: row.userId === request.userId, sees, reads: reads && recordsOf(row).every(sees) };
}

/** Approvals that are looked at for one page at most: those of others may lie between. */
const LOOKED_AT_MAX = 5_000;
const BLOCK = 500;

export const listApprovals: Handler<'agent.approvals.list', AgentDeps> = async (deps, request, { query }) => {
  const { tenantId, userId } = request;
  const { access, sight, sees } = await callerOf(deps, request);
  const { status = null, ...paging } = query;
  const list = { name: 'agent.approvals', parameters: { status } };
  const seal = sealFor(request, deps.sealingKeys, platformTime());
  return listPage(list, parseListQuery(paging, 'query'), seal, {
    rows: ([after = null], take) =>
      deps.database.shared('agent', tenantId, async (tx) => {
        const seen: ApprovalSummaryRow[] = [];
        let before = after;
        // Nearly always, the first rows are the page: those of the reader, or of a tenant whose agents they oversee.
        for (let lookedAt = 0, block = take; lookedAt < LOOKED_AT_MAX; lookedAt += block, block = BLOCK) {
          const filter = { status, before, take: block };
          const found = await tx.all<ApprovalSummaryRow>(approvalsStatement(tenantId, sight, filter));
          seen.push(...found.filter(sees));
          if (found.length < block || seen.length >= take) return { found: seen.slice(0, take), stoppedAt: null };
          before = found.at(-1)?.approvalId ?? null;
        }
        return { found: seen, stoppedAt: before === null ? null : [before] };
      }),
    keys: ({ approvalId }) => [approvalId],
    present: async (page) => {
      const named = page.flatMap((row) => recordInPath(row) ?? []);
      const seesRecord = await sightOf(deps, request, named);
      return page.map((row) =>
        presentSummary(row, { access, isOwn: row.userId === userId, sees: seesRecord, reads: false }),
      );
    },
  });
};
