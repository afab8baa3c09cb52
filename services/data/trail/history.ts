/**
 * The history of a record, newest first: what the caller may read of each change, for as long as the record itself can
 * be seen. Source: docs/reference/records.md.
 */

import type { Handler } from '../../../contracts/operations.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { sealFor } from '../../../lib/values/sealed.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { ReadDeps } from '../read/read.ts';
import { reachSql, table } from '../sql.ts';
import { assertFresh, own, recordNotFound, visibleObject } from '../tenants.ts';
import { TRANSITION_ENTRY } from '../write/trail.ts';
import { bindShown, changesJson } from './changes-json.ts';
import { pageReply } from './page.ts';
import { type ListOf, openPlace, sealPlace } from './place.ts';

export const listHistory: Handler<'data.history.list', ReadDeps> = async (deps, request, call) => {
  const { tenantId, userId } = request;
  const { take, takeClamped, cursor } = parseListQuery(call.query, 'query');
  const { objectApiName } = call.path;
  const id = call.path.id.toLowerCase();
  return deps.tenants.withView(tenantId, userId, async (view) => {
    const { object, readable, fields } = visibleObject(view, objectApiName);
    // Who cannot read the state is told of no way from one to another.
    const { stateModel, actions } = object;
    const showsState = stateModel ? own(fields, stateModel.field)?.read === true : actions.length > 0;
    const list: ListOf = { name: 'history', bound: { objectApiName, id, take } };
    const seal = sealFor(request, deps.sealingKey, Date.now());
    const after = cursor === null ? null : openPlace(list, cursor, seal);
    if (!isUuid(id)) throw recordNotFound();
    const found = await deps.database.tenant(tenantId, async (tx) => {
      const sql = new Sql();
      const record = sql.bind(id, 'uuid');
      const shown = bindShown(sql, readable, call.ieee754Compatible ?? false);
      const text = `SELECT s.metadata_version, s.access_version, v.seen, e.entry::text, e.record_version::text, e.change_id::text
        FROM ${tx.schema}._state s
        CROSS JOIN (SELECT EXISTS (SELECT FROM ${table(tx.schema, object.apiName)} r WHERE r."id" = ${record} AND ${reachSql(view, sql, object.apiName, 'read', 'r')}) AS seen) v
        LEFT JOIN LATERAL (
          SELECT h.record_version, h.change_id, (SELECT row_to_json(x) FROM (SELECT h.change_id AS "changeId", h.at,
              (SELECT row_to_json(a) FROM (SELECT h.user_id AS "userId", h.client_id AS "clientId", h.agent_run_id AS "agentRunId") a) AS actor,
              h.operation, h.request_id AS "requestId", ${changesJson('h.changes', shown)} AS changes${showsState ? `, h.changes -> '${TRANSITION_ENTRY}' AS transition` : ''}) x) AS entry
          FROM ${tx.schema}._history h
          WHERE v.seen AND ${object.features.history} AND h.record_id = ${record} AND h.object = ${sql.bind(object.apiName, 'text')}
            AND (h.operation NOT IN ('update', 'transition') OR h.changes ?| ${shown.names})${
              after
                ? ` AND (h.record_version, h.change_id) < (${sql.bind(after[0], 'integer')}, ${sql.bind(after[1], 'uuid')})`
                : ''
            }
          ORDER BY h.record_version DESC, h.change_id DESC LIMIT ${take + 1}) e ON true`;
      return (await tx.arrays(sql.statement(text))).rows;
    });
    const [first] = found;
    assertFresh(view, first![0], first![1]);
    if (first![2] !== true) throw recordNotFound();
    const entries = found.filter((row) => row[3] !== null);
    const last = entries.length > take ? entries[take - 1]! : null;
    const next = last && sealPlace(list, [last[4] as string, last[5] as string], seal);
    return pageReply(
      { take, takeClamped },
      entries.slice(0, take).map((row) => row[3] as string),
      next,
    );
  });
};
