/** Whether a caller can see a record, as part of a statement that reads what is kept about it. */
import { reach } from '../../../lib/access/sharing.ts';
import { tenantSchema } from '../../../lib/context.ts';
import { conditionSql } from '../../../lib/query/sql.ts';
import type { ObjectMeta } from '../../../lib/snapshot/types.ts';
import { type Sql, schemaOf, table } from '../sql.ts';
import type { View } from '../tenants.ts';

/** `FROM … WHERE …` of the record with this id (SQL), if the caller can see it. */
export function visibleSql(view: View, object: ObjectMeta, id: string, sql: Sql): string {
  const shared = reach(view.access, object.apiName, 'read');
  const condition = shared ? ` AND ${conditionSql(shared, 'r', tenantSchema(view.tenantId), sql.bind)}` : '';
  return `FROM ${table(schemaOf(view.tenantId), object.apiName)} r WHERE r."id" = ${id}${condition}`;
}
