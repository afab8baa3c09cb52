import { NEEDS } from '../../../lib/access/decide.ts';
import { tenantSchema } from '../../../lib/context.ts';
import type { FieldMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { identifier } from '../../../lib/values/sql-text.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { exactJson, reachSql, table } from '../sql.ts';
import { VERSION_COLUMNS, type Versions, type View } from '../view.ts';

interface ReadRecord {
  readonly recordVersion: number;
  /** Values of the fields, decimals as text. */
  readonly values: Readonly<Record<string, unknown>>;
}

/** The record is null when there is none that the caller can read. */
export type SituationRow = Versions & {
  /** Sharing lets the caller execute transitions of the record. */
  readonly editable: boolean;
} & (ReadRecord | { readonly [K in keyof ReadRecord]: null });

/** A record with the stored values of some fields. */
export function situationStatement(
  view: View,
  object: ObjectMeta,
  id: string,
  fields: readonly FieldMeta[],
): Statement {
  const sql = new Sql();
  const schema = identifier(tenantSchema(view.tenantId));
  return sql.statement(`SELECT ${VERSION_COLUMNS}, record."recordVersion",
      CASE WHEN record."id" IS NOT NULL THEN ${exactJson('record', fields)} END AS values,
      ${reachSql(view, sql, object.apiName, NEEDS.transition.level, 'record')} AS editable
    FROM ${schema}._state state
    LEFT JOIN ${table(schema, object.apiName)} record
      ON record."id" = ${sql.bind(id, 'uuid')} AND ${reachSql(view, sql, object.apiName, 'read', 'record')}`);
}
