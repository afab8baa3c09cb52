import { tenantSchema } from '../../../lib/context.ts';
import type { FieldMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { identifier } from '../../../lib/values/sql-text.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { reachSql, table } from '../sql.ts';
import { VERSION_COLUMNS, type Versions, type View } from '../view.ts';
import { TRANSITION_ENTRY } from '../write/trail.ts';
import { bindShown, fieldChangesSql } from './field-changes.sql.ts';

interface HistoryOf {
  readonly object: ObjectMeta;
  readonly id: string;
  /** Only what was changed in this run; null: everything. */
  readonly agentRunId: string | null;
  readonly readable: readonly FieldMeta[];
  /** The caller can read the state, so they may see which transitions led to it. */
  readonly showsTransitions: boolean;
  readonly ieee754Compatible: boolean;
}

interface Entry {
  readonly entry: string;
  readonly recordVersion: string;
  readonly changeId: string;
}

/** There is at least one row; its entry is null when there is none to return. */
export type HistoryRow = Versions & { readonly visible: boolean } & (Entry | { readonly [K in keyof Entry]: null });

/** The newest entries of a record after a version and change id. */
export function historyStatement(
  view: View,
  { object, id, agentRunId, readable, showsTransitions, ieee754Compatible }: HistoryOf,
  after: readonly string[] | null,
  limit: number,
): Statement {
  const sql = new Sql();
  const schema = identifier(tenantSchema(view.tenantId));
  const recordId = sql.bind(id, 'uuid');
  const shown = bindShown(sql, readable, ieee754Compatible);
  const ofRun = agentRunId === null ? '' : ` AND history.agent_run_id = ${sql.bind(agentRunId, 'uuid')}`;
  const rest = after
    ? ` AND (history.record_version, history.change_id)
          < (${sql.bind(after[0], 'integer')}, ${sql.bind(after[1], 'uuid')})`
    : '';
  return sql.statement(`SELECT ${VERSION_COLUMNS}, sharing.visible,
      page.entry::text, page.record_version::text AS "recordVersion", page.change_id::text AS "changeId"
    FROM ${schema}._state state
    CROSS JOIN (SELECT EXISTS (
      SELECT FROM ${table(schema, object.apiName)} record
      WHERE record."id" = ${recordId} AND ${reachSql(view, sql, object.apiName, 'read', 'record')}) AS visible) sharing
    LEFT JOIN LATERAL (
      SELECT history.record_version, history.change_id, (SELECT row_to_json(entry) FROM (
          SELECT history.change_id AS "changeId", history.at,
            (SELECT row_to_json(actor) FROM (
              SELECT history.user_id AS "userId", history.client_id AS "clientId",
                history.agent_run_id AS "agentRunId") actor) AS actor,
            history.operation, history.request_id AS "requestId",
            ${fieldChangesSql('history.changes', shown)} AS changes${
              showsTransitions ? `, history.changes -> '${TRANSITION_ENTRY}' AS transition` : ''
            }) entry) AS entry
      FROM ${schema}._history history
      WHERE sharing.visible AND ${object.features.history} AND history.record_id = ${recordId}
        AND history.object = ${sql.bind(object.apiName, 'text')}
        AND (history.operation NOT IN ('update', 'transition') OR history.changes ?| ${shown.names})${ofRun}${rest}
      ORDER BY history.record_version DESC, history.change_id DESC LIMIT ${limit}) page ON true`);
}
