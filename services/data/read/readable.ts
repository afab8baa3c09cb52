/** Records that other services refer to, as far as a user can read them now. */
import type { DataActions, ReadableRecord } from '../../../contracts/data.ts';
import type { ObjectAccess } from '../../../lib/access/types.ts';
import type { Asker } from '../../../lib/context.ts';
import { columnSql } from '../../../lib/expression/formulas.ts';
import { ownEntry, requireField } from '../../../lib/schema/lookup.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { isUserObject } from '../../../lib/schema/user-object.ts';
import { literal } from '../../../lib/values/sql-text.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { reachSql, schemaOf, table } from '../sql.ts';
import { VERSION_COLUMNS, type Versions, type View } from '../view.ts';
import type { ReadDeps } from './read.ts';
import { checkedRow } from './versions.ts';

/** The field that names the records of an object; null: the user cannot read it. */
export function namingField({ object, fields }: Pick<ObjectAccess, 'object' | 'fields'>): FieldMeta | null {
  const name = isUserObject(object) ? 'displayName' : object.nameField;
  return fields[name]?.read ? requireField(object, name) : null;
}

/** There is at least one row; its id is null when the user can read none of the records. */
type ReadableRow = Versions & (ReadableRecord | { readonly id: null });

interface AskedObject {
  readonly access: ObjectAccess;
  readonly ids: readonly string[];
}

/** Those of the records that the user can read, with their names. */
export async function readableRecords(
  { database, tenants }: ReadDeps,
  { tenantId, userId, deniedObjects = [] }: Asker,
  { records }: DataActions['data.records.readable']['params'],
): Promise<ReadableRecord[]> {
  if (records.length === 0) return [];
  const asked = [...Map.groupBy(records, ({ objectApiName }) => objectApiName)];
  return tenants.withView(tenantId, userId, async (view) => {
    const objects = asked.flatMap(([apiName, ofObject]): AskedObject[] => {
      const access = deniedObjects.includes(apiName) ? undefined : ownEntry(view.access.objects, apiName);
      return access ? [{ access, ids: [...new Set(ofObject.map(({ id }) => id))] }] : [];
    });
    if (objects.length === 0) return [];
    const rows = await database.tenant(tenantId, (tx) => tx.all<ReadableRow>(readableStatement(view, objects)));
    checkedRow(view, rows);
    return rows.flatMap((row) =>
      row.id === null ? [] : [{ objectApiName: row.objectApiName, id: row.id, name: row.name }],
    );
  });
}

function readableStatement(view: View, objects: readonly AskedObject[]): Statement {
  const sql = new Sql();
  const schema = schemaOf(view.tenantId);
  const parts = objects.map(({ access, ids }) => {
    const { apiName } = access.object;
    const field = namingField(access);
    return `SELECT ${literal(apiName)} AS "objectApiName", t."id", ${field ? `(${columnSql(field, 't')})::text` : 'NULL'} AS name
      FROM ${table(schema, apiName)} t
      WHERE t."id" = ANY (${sql.bind(ids, 'uuid[]')}) AND ${reachSql(view, sql, apiName, 'read', 't')}`;
  });
  return sql.statement(`SELECT ${VERSION_COLUMNS}, found.*
    FROM ${schema}._state state LEFT JOIN (${parts.join('\nUNION ALL ')}) found ON true`);
}
