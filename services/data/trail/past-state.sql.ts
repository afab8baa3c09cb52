/** Records and shares as they were before some transactions: the stored rows with what the audit trail says undone. */
import type { Relations } from '../../../lib/query/sql.ts';
import { literal } from '../../../lib/values/sql-text.ts';
import { columnName, fittingValues, storedFields, table } from '../sql.ts';
import { formerRow } from '../write/restore.sql.ts';

/** SQL: a snapshot did not see the transaction. Of what others have written, a statement sees what they have committed. */
export const committedSince =
  (snapshot: string) =>
  (tx: string): string =>
    `${tx} >= pg_snapshot_xmin(${snapshot}) AND NOT pg_visible_in_snapshot(${tx}, ${snapshot})`;

/** SQL: one snapshot did not see the transaction, the other one does. */
export const committedWithin =
  (begin: string, end: string) =>
  (tx: string): string =>
    `${tx} >= pg_snapshot_xmin(${begin}) AND ${tx} < pg_snapshot_xmax(${end})
        AND NOT pg_visible_in_snapshot(${tx}, ${begin}) AND pg_visible_in_snapshot(${tx}, ${end})`;

export interface PastState {
  /** Condition on `_audit audit`: a change of a record by an undone transaction. */
  readonly undoneChanges: string;
  /** SELECT of `object, record_id, tx` of the shares that undone transactions gave or took back. */
  readonly undoneShares: (objects: string) => string;
  /** Boolean: an undone transaction changed the record. */
  readonly isChanged: (id: string) => string;
  /** SELECT of `is_new` (an undone transaction created the record) and `fields` (jsonb, the values it had before). */
  readonly previousValues: (id: string) => string;
  /** Sources that predicates read instead of the tables. */
  readonly relations: Relations;
}

/**
 * The state before the transactions for which `undone` is true, an SQL condition on a column with their number.
 * `notBefore`: an id before those of all their entries, so that a record's older entries are not looked at.
 * `withStamps`: predicates read what every write changes by itself, such as updatedAt.
 */
export function pastState(
  schema: string,
  undone: (tx: string) => string,
  notBefore: string,
  withStamps: boolean,
): PastState {
  const auditRows = `${schema}._audit audit`;
  const undoneChanges = `audit.kind IS NOT NULL AND ${undone('audit.tx')}`;
  // The index of a record's entries ends in their ids.
  const undoneChangesOf = (id: string): string =>
    `audit.record_id = ${id} AND audit.audit_id > ${notBefore} AND ${undoneChanges}`;
  // Not EXISTS, which the planner may compute for all records at once.
  const isChanged = (id: string): string =>
    `(SELECT true FROM ${auditRows} WHERE ${undoneChangesOf(id)} LIMIT 1) IS NOT NULL`;
  // From the last write that is not undone.
  const stamps = (id: string): string =>
    `coalesce((
          SELECT jsonb_build_object(
            'updatedAt', audit.at, 'updatedById', audit.user_id, 'recordVersion', audit.record_version)
          FROM ${auditRows} WHERE audit.record_id = ${id} AND audit.kind IS NOT NULL AND NOT (${undone('audit.tx')})
          ORDER BY audit.record_version DESC LIMIT 1), '{}')`;
  const previousValues = (id: string): string =>
    `SELECT
        coalesce((
          SELECT audit.kind IN ('create', 'restore') FROM ${auditRows} WHERE ${undoneChangesOf(id)}
          ORDER BY audit.record_version, (audit.kind = 'delete')::int LIMIT 1), false) AS is_new,
        (SELECT coalesce(jsonb_object_agg(change.key, change.value -> 'from'
            ORDER BY audit.record_version DESC, (audit.kind = 'delete')::int DESC), '{}')
          FROM ${auditRows} CROSS JOIN LATERAL jsonb_each(audit.changes) change
          WHERE ${undoneChangesOf(id)})${withStamps ? ` || ${stamps(id)}` : ''} AS fields`;
  const relations = pastRelations(schema, undone, isChanged, previousValues);
  return {
    undoneChanges,
    undoneShares: (objects) => undoneShares(schema, undone, objects),
    isChanged,
    previousValues,
    relations,
  };
}

function pastRelations(
  schema: string,
  undone: (tx: string) => string,
  isChanged: PastState['isChanged'],
  previousValues: PastState['previousValues'],
): Relations {
  const columns = 'object, record_id, principal_type, principal_id, access';
  return {
    shares: `(SELECT ${columns} FROM ${schema}._shares WHERE NOT (${undone('tx')})
      UNION ALL
      SELECT ${columns} FROM ${schema}._revoked_shares WHERE ${undone('tx')} AND NOT (${undone('granted_tx')}))`,
    records: (object) => {
      const records = table(schema, object.apiName);
      const otherColumns = storedFields(object)
        .map(columnName)
        .filter((column) => column !== '"id"')
        .map((column) => `past.${column}`)
        .join(', ');
      const undo = (id: string, row: string): string =>
        `CROSS JOIN LATERAL (${previousValues(id)}) previous
          CROSS JOIN LATERAL jsonb_populate_record(${row}, ${fittingValues(object, 'previous.fields')}) past`;
      return `(SELECT live."id", ${otherColumns} FROM ${records} live ${undo('live."id"', 'live')}
          WHERE NOT previous.is_new
        UNION ALL
        SELECT bin.record_id AS "id", ${otherColumns} FROM ${schema}._recycle_bin bin
          ${undo('bin.record_id', formerRow(schema, object, 'bin.record'))}
          WHERE bin.object = ${literal(object.apiName)} AND NOT previous.is_new AND ${isChanged('bin.record_id')})`;
    },
  };
}

/** A share that has been taken back was given by a transaction of its own. */
function undoneShares(schema: string, undone: (tx: string) => string, objects: string): string {
  const changesIn = (shares: string, tx: string): string =>
    `SELECT object, record_id, ${tx} AS tx FROM ${schema}.${shares} WHERE object = ANY(${objects}) AND ${undone(tx)}`;
  return [
    changesIn('_shares', 'tx'),
    changesIn('_revoked_shares', 'tx'),
    changesIn('_revoked_shares', 'granted_tx'),
  ].join(' UNION ');
}
