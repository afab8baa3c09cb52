/** The audit trail of a tenant, newest first, for users with the system permission. Source: docs/reference/audit.md. */

import type { Handler, OperationInput } from '../../../contracts/operations.ts';
import { holdsPermission, permissionDenied } from '../../../lib/access/system-permission.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { type ListIdentity, openListCursor, sealListCursor } from '../../../lib/query/list-cursor.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { sealFor } from '../../../lib/values/sealed.ts';
import { requireApi } from '../object-access.ts';
import type { ReadDeps } from '../read/read.ts';
import { checkedRow } from '../read/versions.ts';
import type { View } from '../view.ts';
import {
  type AuditFilters,
  type AuditRow,
  auditStatement,
  CLOCKS_DIFFER_MS,
  lastExaminedStatement,
} from './audit-list.sql.ts';
import { pageReply } from './page.ts';

export const listAudit: Handler<'events.audit.list', ReadDeps> = async (deps, request, call) => {
  const { tenantId, userId } = request;
  const { take: asked, cursor, ...parameters } = call.query;
  const { take, takeClamped } = parseListQuery(asked === undefined ? {} : { take: asked }, 'query');
  return deps.tenants.withView(tenantId, userId, async (view) => {
    requireApi(view);
    requireViewAudit(view);
    const list: ListIdentity = { name: 'audit', parameters: { take, ...parameters } };
    const seal = sealFor(request, deps.sealingKeys, platformTime());
    const afterId = cursor === undefined ? null : (openListCursor(list, cursor, seal)[0] ?? null);
    const filters = filtersOf(call.query, request);
    const statement = auditStatement(view, filters, afterId, take + 1, call.ieee754Compatible ?? false);
    const { found, more, examined } = await deps.database.tenant(tenantId, async (tx) => {
      const { rows, more } = await tx.allUpTo<AuditRow>(statement, LIMITS.page_max_bytes);
      checkedRow(view, rows);
      const found = rows.filter((row) => row.entry !== null);
      if (more || found.length > take || !hasUnindexed(filters)) return { found, more, examined: null };
      // The page is not full, and yet entries may be left that were not examined.
      const last = await tx.first<{ auditId: string }>(lastExaminedStatement(tx.schema, filters, afterId));
      return { found, more, examined: last?.auditId ?? null };
    });
    const page = found.slice(0, take);
    const last = more || found.length > take ? (page.at(-1)?.auditId ?? null) : examined;
    return pageReply(
      { take, takeClamped },
      page.map((row) => row.entry),
      last === null ? null : sealListCursor(list, [last], seal),
    );
  });
};

function requireViewAudit({ access }: View): void {
  if (!holdsPermission(access.system, 'viewAudit')) throw permissionDenied('viewAudit');
}

const hasUnindexed = ({ objectApiName, operationId, outcome, withoutObjects }: AuditFilters): boolean =>
  objectApiName !== null || operationId !== null || outcome !== null || withoutObjects.length > 0;

function filtersOf(
  query: OperationInput<'events.audit.list'>['query'],
  { deniedObjects = [] }: RequestContext,
): AuditFilters {
  const [from, to] = [timeOf('from', query.from), timeOf('to', query.to)];
  if (from !== null && to !== null && from > to)
    throw new PlatformError('PARAMETER_CONFLICT', 'from must not be later than to.', {
      errors: [violation('query:from', 'PARAMETER_CONFLICT', 'from must not be later than to.')],
    });
  return {
    actorId: query.actorId?.toLowerCase() ?? null,
    recordId: query.recordId?.toLowerCase() ?? null,
    agentRunId: query.agentRunId?.toLowerCase() ?? null,
    from,
    to,
    objectApiName: query.objectApiName ?? null,
    operationId: query.operationId ?? null,
    outcome: query.outcome ?? null,
    withoutObjects: deniedObjects,
  };
}

function timeOf(name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  const time = Date.parse(text);
  if (Number.isFinite(time) && time >= 0 && time < LATEST_TIME) return time;
  const message = `${name} must be a time from 1970 on, such as 2026-11-21T08:00:00Z.`;
  throw new PlatformError('PARAMETER_INVALID', message, {
    errors: [violation(`query:${name}`, 'PARAMETER_INVALID', message)],
  });
}

/** An id has 48 bits for milliseconds; less the time by which clocks may differ. */
const LATEST_TIME = 2 ** 48 - 2 * CLOCKS_DIFFER_MS;
