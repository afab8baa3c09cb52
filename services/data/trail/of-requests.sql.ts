/** The statements that find what requests of an agent run have changed, and what of it a user can see. */
import type { RecordName } from '../../../contracts/data.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { literal } from '../../../lib/values/sql-text.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { reachSql, schemaOf, table } from '../sql.ts';
import { VERSION_COLUMNS, type Versions, type View } from '../view.ts';
import { formerRow } from '../write/restore.sql.ts';

export interface ChangedRow {
  readonly requestId: string;
  readonly objectApiName: string;
  readonly id: string;
}

/** Entries of one request that are looked at: a record may have several. */
const ENTRIES_MAX = 10 * LIMITS.request_records_max;

/** The records that each request has changed first, in the order of the changes. */
export function changedStatement(schema: string, agentRunId: string, requestIds: readonly string[]): Statement {
  const sql = new Sql();
  const run = sql.bind(agentRunId, 'uuid');
  return sql.statement(`SELECT asked.id AS "requestId", changed.object AS "objectApiName", changed.record_id AS id
    FROM unnest(${sql.bind([...requestIds], 'text[]')}) WITH ORDINALITY asked(id, position)
    CROSS JOIN LATERAL (
      SELECT entry.object, entry.record_id, min(entry.audit_id::text) AS first
      FROM (SELECT object, record_id, audit_id FROM ${schema}._audit
        WHERE agent_run_id = ${run} AND request_id = asked.id AND kind IS NOT NULL
        LIMIT ${ENTRIES_MAX}) entry
      GROUP BY entry.object, entry.record_id ORDER BY first LIMIT ${LIMITS.request_records_max}) changed
    ORDER BY asked.position, changed.first`);
}

/** There is at least one row; its id is null when the user can see none of the records. */
export type SeenRow = Versions & (RecordName | { readonly objectApiName: null; readonly id: null });

/** Those of the records that the user can see, or could see when they were deleted. */
export function seenStatement(
  view: View,
  records: readonly { readonly object: ObjectMeta; readonly ids: readonly string[] }[],
): Statement {
  const sql = new Sql();
  const schema = schemaOf(view.tenantId);
  const seen = records.flatMap(({ object, ids }) => {
    const name = literal(object.apiName);
    const bound = sql.bind(ids, 'uuid[]');
    const visible = reachSql(view, sql, object.apiName, 'read', 't');
    return [
      `SELECT ${name} AS object, t."id" FROM ${table(schema, object.apiName)} t WHERE t."id" = ANY(${bound}) AND ${visible}`,
      `SELECT ${name}, bin.record_id FROM ${schema}._recycle_bin bin, LATERAL ${formerRow(schema, object, 'bin.record')} t
        WHERE bin.object = ${name} AND bin.record_id = ANY(${bound}) AND ${visible}`,
    ];
  });
  return sql.statement(`SELECT ${VERSION_COLUMNS}, seen.object AS "objectApiName", seen.id
    FROM ${schema}._state state LEFT JOIN (${seen.join('\nUNION ALL ')}) seen ON true`);
}
