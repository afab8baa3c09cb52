/** The statement that reads the changes of events, for one user. */

import type { EventRecordsQuestion } from '../../../contracts/data/event-records.ts';
import type { ObjectAccess } from '../../../lib/access/types.ts';
import { firstUuidv7 } from '../../../lib/values/ids.ts';
import { literal } from '../../../lib/values/sql-text.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { columnType, reachSql, schemaOf, table } from '../sql.ts';
import { VERSION_COLUMNS, type Versions, type View } from '../view.ts';
import { formerRow } from '../write/restore.sql.ts';

export interface ReadableObject {
  readonly access: Pick<ObjectAccess, 'object' | 'readable'>;
  readonly records: EventRecordsQuestion['records'];
}

/** By how much the clocks by which audit entries got their ids may differ. */
const CLOCKS_DIFFER_MS = 24 * 60 * 60 * 1_000;

interface Change {
  readonly place: number;
  readonly kind: string;
  readonly changedFields: readonly string[];
  readonly before: string | null;
  readonly after: string | null;
}

/** There is at least one row, in the order of the events; its place is null when the user can read none of the records. */
export type EventRecordRow = Versions & (Change | { readonly [K in keyof Change]: null });

/** What changed stands in the audit entry of the record and version, from where the event has no copy of it. */
export function eventRecordsStatement(view: View, objects: readonly ReadableObject[], full: boolean): Statement {
  const sql = new Sql();
  const schema = schemaOf(view.tenantId);
  const parts = objects.map(({ access: { object, readable }, records }) => {
    const ids = sql.bind([...new Set(records.map(({ id }) => id))], 'uuid[]');
    const visible = reachSql(view, sql, object.apiName, 'read', 't');
    const names = sql.bind(
      readable.filter((field) => columnType(field) !== null).map(({ apiName }) => apiName),
      'text[]',
    );
    const since = Math.min(...records.map(({ at }) => at)) - CLOCKS_DIFFER_MS;
    const column = (values: readonly unknown[], type: string): string => sql.bind([...values], type);
    const asked = `unnest(${column(
      records.map(({ place }) => place),
      'integer[]',
    )}, ${column(
      records.map(({ id }) => id),
      'uuid[]',
    )}, ${column(
      records.map(({ version }) => version),
      'integer[]',
    )}, ${column(
      records.map(({ deleted }) => deleted),
      'boolean[]',
    )}) asked(place, id, version, deleted)`;
    return `SELECT asked.place, audit.kind, audit.changes, ${names} AS names
      FROM ${asked}
      JOIN (SELECT t."id" FROM ${table(schema, object.apiName)} t WHERE t."id" = ANY(${ids}) AND ${visible}
        UNION ALL
        SELECT bin.record_id FROM ${schema}._recycle_bin bin, LATERAL ${formerRow(schema, object, 'bin.record')} t
        WHERE bin.object = ${literal(object.apiName)} AND bin.record_id = ANY(${ids}) AND ${visible}) seen ON seen."id" = asked.id
      CROSS JOIN LATERAL (
        SELECT kind, changes FROM ${schema}._audit
        WHERE record_id = asked.id AND record_version = asked.version AND (kind = 'delete') = asked.deleted AND object = ${literal(object.apiName)}
          AND audit_id >= ${sql.bind(firstUuidv7(since), 'uuid')} LIMIT 1) audit`;
  });
  const side = (name: 'from' | 'to'): string =>
    full
      ? `(SELECT coalesce(json_object_agg(shown.name, change.changes -> shown.name -> '${name}' ORDER BY shown.position), '{}')
          FROM unnest(change.names) WITH ORDINALITY shown(name, position) WHERE change.changes ? shown.name)::text`
      : 'NULL::text';
  return sql.statement(`SELECT ${VERSION_COLUMNS}, change.place, change.kind,
      ARRAY(SELECT name FROM unnest(change.names) name WHERE change.changes ? name) AS "changedFields",
      ${side('from')} AS before, ${side('to')} AS after
    FROM ${schema}._state state LEFT JOIN (${parts.join('\n      UNION ALL ')}) change ON true
    ORDER BY change.place`);
}
