/**
 * The history of a record, newest first: what the caller may read of each change, for as long as the caller can see the
 * record itself. Source: docs/reference/records.md.
 */

import type { Handler } from '../../../contracts/operations.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { type ListIdentity, openListCursor, sealListCursor } from '../../../lib/query/list-cursor.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { sealFor } from '../../../lib/values/sealed.ts';
import { recordNotFound, visibleObject } from '../object-access.ts';
import type { ReadDeps } from '../read/read.ts';
import { checkedRow } from '../read/versions.ts';
import { type HistoryRow, historyStatement } from './history.sql.ts';
import { pageReply } from './page.ts';

export const listHistory: Handler<'data.history.list', ReadDeps> = async (deps, request, call) => {
  const { tenantId, userId } = request;
  const { agentRunId: run, ...paging } = call.query;
  const { take, takeClamped, cursor } = parseListQuery(paging, 'query');
  const agentRunId = run?.toLowerCase() ?? null;
  const { objectApiName } = call.path;
  const id = call.path.id.toLowerCase();
  return deps.tenants.withView(tenantId, userId, async (view) => {
    const { object, readable, fields } = visibleObject(view, objectApiName);
    // A caller who cannot read the state must not learn it from the transitions.
    const { stateModel, actions } = object;
    const showsTransitions = stateModel ? ownEntry(fields, stateModel.field)?.read === true : actions.length > 0;
    const list: ListIdentity = { name: 'history', parameters: { objectApiName, id, agentRunId, take } };
    const seal = sealFor(request, deps.sealingKeys, platformTime());
    const after = cursor === null ? null : openListCursor(list, cursor, seal);
    if (!isUuid(id)) throw recordNotFound();
    const ieee754Compatible = call.ieee754Compatible ?? false;
    const history = { object, id, agentRunId, readable, showsTransitions, ieee754Compatible };
    const { rows, more } = await deps.database.tenant(tenantId, (tx) =>
      tx.allUpTo<HistoryRow>(historyStatement(view, history, after, take + 1), LIMITS.page_max_bytes),
    );
    if (!checkedRow(view, rows).visible) throw recordNotFound();
    const found = rows.filter((row) => row.entry !== null);
    const page = found.slice(0, take);
    const last = more || found.length > take ? page.at(-1) : undefined;
    const next = last ? sealListCursor(list, [last.recordVersion, last.changeId], seal) : null;
    return pageReply(
      { take, takeClamped },
      page.map((row) => row.entry),
      next,
    );
  });
};
