import { NEEDS } from '../../../lib/access/decide.ts';
import { tenantSchema } from '../../../lib/context.ts';
import { identifier } from '../../../lib/values/sql-text.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { reachSql, table } from '../sql.ts';
import { VERSION_COLUMNS, type Versions, type View } from '../view.ts';
import { SHARE_COLUMNS } from './shares.ts';

export interface SharesRow extends Versions {
  /** Null: there is no such record that the caller can read. */
  readonly mayShare: boolean | null;
  /** JSON array; null unless the caller may share the record. */
  readonly shares: string | null;
}

/** The shares of a record, the oldest first. */
export function sharesStatement(view: View, objectApiName: string, id: string): Statement {
  const sql = new Sql();
  const schema = identifier(tenantSchema(view.tenantId));
  const recordId = sql.bind(id, 'uuid');
  const reached = (operation: 'read' | 'share'): string =>
    reachSql(view, sql, objectApiName, NEEDS[operation].level, 'record');
  return sql.statement(`SELECT ${VERSION_COLUMNS}, reached.may_share AS "mayShare",
      CASE WHEN reached.may_share THEN (
        SELECT coalesce(json_agg(share ORDER BY share."createdAt", share."shareId"), '[]') FROM (
          SELECT ${SHARE_COLUMNS} FROM ${schema}._shares sh
          WHERE sh.record_id = ${recordId} AND sh.object = ${sql.bind(objectApiName, 'text')}) share)::text
      END AS shares
    FROM ${schema}._state state
    LEFT JOIN (
      SELECT ${reached('share')} AS may_share FROM ${table(schema, objectApiName)} record
      WHERE record."id" = ${recordId} AND ${reached('read')}) reached ON true`);
}
