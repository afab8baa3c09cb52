/**
 * The statements of the change feed. A window lies between two snapshots of the database. What is reported is what
 * differs between its two ends, so that the next window can go on from there; the content of a record is reported as it
 * is now. What happened after the end is left to the windows that follow.
 */
import type { Predicate } from '../../../lib/access/predicate.ts';
import { tenantSchema } from '../../../lib/context.ts';
import { conditionSql, type Relations } from '../../../lib/query/sql.ts';
import type { FieldMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { firstUuidv7 } from '../../../lib/values/ids.ts';
import { identifier, literal } from '../../../lib/values/sql-text.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { type EpochRow, epochColumns } from '../../../mixins/epoch/epoch.sql.ts';
import { columnName, fittingValues, recordJson, table } from '../sql.ts';
import { VERSION_COLUMNS, type Versions } from '../view.ts';
import { formerRow } from '../write/restore.sql.ts';
import type { FeedAccess, SharingParent } from './changes-access.ts';
import type { ChangeWindow, FeedPosition } from './changes-cursor.ts';
import { committedSince, committedWithin, type PastState, pastState } from './past-state.sql.ts';

/** Entries of the audit trail in one window, about: transactions stay whole, and some are still running. */
const WINDOW_ENTRIES = 1_000;
/** Records that one statement looks at. */
export const CANDIDATES_MAX = 1_000;
/** By how much the clocks by which entries got their ids may differ. */
const CLOCKS_DIFFER_MS = 24 * 60 * 60 * 1_000;

/** Subject of one caller's feed. */
export interface Feed {
  readonly tenantId: string;
  readonly object: ObjectMeta;
  /** Fields of a reported record. */
  readonly readable: readonly FieldMeta[];
  readonly access: FeedAccess;
  /** Decimals as JSON strings. */
  readonly ieee754Compatible: boolean;
}

export type MomentRow = Versions & EpochRow;

/** The snapshot of the transaction, with the versions it sees. */
export const momentStatement = (schema: string): Statement => ({
  text: `SELECT ${VERSION_COLUMNS}, ${epochColumns(schema)}
    FROM ${schema}._state state CROSS JOIN ${schema}._epoch epoch`,
});

export interface WindowEndRow {
  readonly tx: string;
  /** Milliseconds since 1970. */
  readonly time: number;
}

/** The last of the audit entries that fill a window which begins at a snapshot; no row when fewer are left. */
export function windowEndStatement(schema: string, { object, access }: Feed, snapshot: string): Statement {
  const sql = new Sql();
  const objects = sql.bind(decidingObjects(object, access), 'text[]');
  return sql.statement(`SELECT audit.tx::text AS tx, (extract(epoch FROM audit.at) * 1000)::bigint AS time
    FROM ${schema}._audit audit
    WHERE audit.object = ANY(${objects}) AND ${committedSince(sql.bind(snapshot, 'pg_snapshot'))('audit.tx')}
    ORDER BY audit.tx LIMIT 1 OFFSET ${WINDOW_ENTRIES - 1}`);
}

interface Progress {
  /** Of the records that the statement looked at: the greatest id, and how many there were. */
  readonly lastId: string | null;
  readonly candidateCount: number;
}

interface Entry {
  readonly id: string;
  readonly change: 'upserted' | 'deleted' | 'accessLost';
  readonly record: string | null;
  readonly version: number | null;
}

/** There is at least one row, for the progress; its entry is null when nothing is to be reported. */
export type ChangeRow = Progress & (Entry | { readonly [K in keyof Entry]: null });

/** The parts of the statement that depend on both ends of the window. */
interface Scope {
  readonly sql: Sql;
  readonly schema: string;
  readonly feed: Feed;
  /** SQL of an array: the object and those whose records decide about its records. */
  readonly objects: string;
  /** Parents on every level. */
  readonly parents: readonly SharingParent[];
  /** Changes in the window; before it; and after it. */
  readonly within: PastState;
  readonly before: PastState;
  readonly after: PastState;
  /** The state before the transactions for which an SQL condition holds. */
  readonly past: (undone: (tx: string) => string) => PastState;
  /** The window ends now, so that its end is what the tables hold. */
  readonly endsNow: boolean;
}

/** The changes of a window after `window.afterId`, in the order of the records' ids. `now` is the current snapshot. */
export function changesStatement(
  feed: Feed,
  position: FeedPosition,
  window: ChangeWindow,
  now: string,
  limit: number,
): Statement {
  const sql = new Sql();
  const schema = identifier(tenantSchema(feed.tenantId));
  const [begin, end] = [sql.bind(position.snapshot, 'pg_snapshot'), sql.bind(window.end, 'pg_snapshot')];
  const notBefore = sql.bind(firstUuidv7(position.time - CLOCKS_DIFFER_MS), 'uuid');
  const past = (undone: (tx: string) => string): PastState =>
    pastState(schema, undone, notBefore, feed.access.readsStamps);
  const scope: Scope = {
    sql,
    schema,
    feed,
    objects: sql.bind(decidingObjects(feed.object, feed.access), 'text[]'),
    parents: feed.access.parents.flatMap(withAncestors),
    within: past(committedWithin(begin, end)),
    before: past(committedSince(begin)),
    after: past(committedSince(end)),
    past,
    endsNow: window.end === now,
  };
  const ctes = [
    windowLogCte(scope),
    shareChangesCte(scope),
    ...(scope.parents.length > 0 ? [formerParentsCte(scope)] : []),
    candidatesCte(scope, window.afterId),
  ];
  return sql.statement(`WITH ${ctes.join(',\n    ')}
    SELECT entry.id::text, entry.change, entry.record, entry.version,
      progress.last_id AS "lastId", progress.candidate_count AS "candidateCount"
    FROM (SELECT max(id::text) AS last_id, count(*)::int AS candidate_count FROM candidates) progress
    LEFT JOIN LATERAL (${entriesSql(scope, position.initial, window.isLast, limit)}) entry ON true`);
}

/** The object, and those whose records decide who sees its records. */
const decidingObjects = (object: ObjectMeta, access: FeedAccess): string[] => [
  object.apiName,
  ...access.parents.flatMap(withAncestors).map((parent) => parent.object.apiName),
];

const withAncestors = (parent: SharingParent): SharingParent[] => [parent, ...parent.parents.flatMap(withAncestors)];

/** Changes of these objects committed in the window. */
const windowLogCte = ({ schema, objects, within }: Scope): string =>
  `window_log AS MATERIALIZED (
      SELECT audit.object, audit.record_id, audit.kind, audit.changes, audit.tx FROM ${schema}._audit audit
      WHERE audit.object = ANY(${objects}) AND ${within.undoneChanges})`;

/** Records that were shared, or shared no longer, in the window. */
const shareChangesCte = ({ objects, within }: Scope): string =>
  `share_changes AS MATERIALIZED (${within.undoneShares(objects)})`;

/** Parents that records had in the window and no longer have, also because the record was deleted. */
function formerParentsCte({ schema, objects, parents, after, endsNow }: Scope): string {
  const fields = [...new Set(parents.map(({ field }) => literal(field.apiName)))];
  const decided = parents.map((parent) => `EXISTS (${changedParentsSql(parent)})`).join(' OR ');
  const leftAfterwards = `
        UNION ALL SELECT audit.object, audit.record_id, audit.changes FROM ${schema}._audit audit
        WHERE (${decided}) AND audit.object = ANY(${objects}) AND ${after.undoneChanges}`;
  return `former_parents AS MATERIALIZED (
      SELECT logged.object, logged.record_id, link.field, link.parent
      FROM (SELECT object, record_id, changes FROM window_log${endsNow ? '' : leftAfterwards}) logged
        CROSS JOIN LATERAL (
          VALUES ${fields.map((field) => `(${field}, logged.changes -> ${field} ->> 'from')`).join(', ')}
        ) link (field, parent)
      WHERE link.parent IS NOT NULL)`;
}

/**
 * The next records that may have changed or become visible or invisible, with the transactions that may have done it.
 * `changed_itself`: not only a parent or a share of it has changed.
 */
function candidatesCte({ sql, schema, feed: { object, access } }: Scope, afterId: string | null): string {
  const name = literal(object.apiName);
  const children = access.parents.map(
    (parent) => `
        UNION ALL SELECT id, tx, false FROM (${childrenSql(schema, object, parent)}) children`,
  );
  const rest = afterId === null ? '' : `WHERE touched.id > ${sql.bind(afterId, 'uuid')}`;
  return `candidates AS MATERIALIZED (
      SELECT touched.id, bool_or(touched.itself) AS changed_itself, array_agg(DISTINCT touched.tx) AS transactions
      FROM (
        SELECT record_id AS id, tx, true AS itself FROM window_log WHERE object = ${name}
        UNION ALL SELECT record_id, tx, false FROM share_changes WHERE object = ${name}${children.join('')}
      ) touched ${rest}
      GROUP BY touched.id ORDER BY touched.id LIMIT ${CANDIDATES_MAX})`;
}

/** Ids of parents that were shared otherwise or changed in a deciding field, with the transactions. */
function changedParentsSql({ object, decidingFields }: SharingParent): string {
  const name = literal(object.apiName);
  const fields = decidingFields?.map(literal).join(', ');
  const decides = fields ? ` AND (kind NOT IN ('update', 'transition') OR changes ?| ARRAY[${fields}])` : '';
  return `SELECT record_id AS id, tx FROM window_log WHERE object = ${name}${decides}
        UNION SELECT record_id, tx FROM share_changes WHERE object = ${name}`;
}

/** Ids of records that are or were below such parents, or further below, with the transactions. */
function childrenSql(schema: string, child: ObjectMeta, parent: SharingParent): string {
  const changed = [
    changedParentsSql(parent),
    ...parent.parents.map((grandparent) => childrenSql(schema, parent.object, grandparent)),
  ];
  return `SELECT child.id, changed_parent.tx
      FROM (${changed.join(' UNION ')}) changed_parent
      CROSS JOIN LATERAL (
        SELECT current_child."id" AS id FROM ${table(schema, child.apiName)} current_child
        WHERE current_child.${columnName(parent.field)} = changed_parent.id
        UNION ALL SELECT former.record_id FROM former_parents former
        WHERE former.object = ${literal(child.apiName)} AND former.field = ${literal(parent.field.apiName)}
          AND former.parent = changed_parent.id::text) child`;
}

/**
 * One entry per candidate that is to be reported. `live` is the record, `bin` its row in the recycle bin.
 * `initial`: the copy is filled from lists, so it may hold whatever was visible at some time in the window.
 */
function entriesSql(scope: Scope, initial: boolean, isLast: boolean, limit: number): string {
  const { sql, schema, feed, before, after, past, endsNow } = scope;
  const { access, object, readable, ieee754Compatible } = feed;
  const records = table(schema, object.apiName);
  const name = literal(object.apiName);
  const deletedRecord = formerRow(schema, object, 'bin.record');
  const beforeDeletion = past((tx) => `${tx} >= deletion.tx`);
  // A page read after its window ended leaves out records that were invisible by then and may be visible again by now.
  const regained = access.sharing === null ? 'false' : atSomeTime(scope, 'NOT visible_then.yes');
  // A record that changed again is reported by a later window; the last window defers nothing, or a record could wait for ever.
  const changesLater = isLast ? 'false' : after.isChanged('candidate.id');
  const visibleInBetween = initial ? ` OR NOT visible_at_end.yes AND ${atSomeTime(scope, 'visible_then.yes')}` : '';
  return `
      SELECT candidate.id,
        CASE WHEN visible_at_end.yes THEN 'upserted'
          WHEN live."id" IS NULL AND visible_when_deleted.yes THEN 'deleted'
          ELSE 'accessLost' END AS change,
        CASE WHEN visible_at_end.yes AND visible_now.yes
          THEN ${recordJson('live', readable, ieee754Compatible)}::text END AS record,
        CASE WHEN visible_at_end.yes AND visible_now.yes THEN live."recordVersion" END AS version
      FROM candidates candidate
      LEFT JOIN ${records} live ON live."id" = candidate.id
      LEFT JOIN ${schema}._recycle_bin bin
        ON bin.object = ${name} AND bin.record_id = candidate.id AND live."id" IS NULL
      CROSS JOIN LATERAL (
        SELECT live."id" IS NOT NULL AND coalesce(${visibleSql(scope, 'live')}, false) AS yes) visible_now
      CROSS JOIN LATERAL (${endsNow ? 'SELECT visible_now.yes' : wasVisibleSql(scope, after)}) visible_at_end
      CROSS JOIN LATERAL (
        SELECT at_begin.yes${visibleInBetween} AS yes FROM (${wasVisibleSql(scope, before)}) at_begin) visible_before
      LEFT JOIN LATERAL (
        SELECT audit.tx FROM ${schema}._audit audit WHERE audit.record_id = candidate.id AND audit.kind = 'delete'
        ORDER BY audit.record_version DESC LIMIT 1
      ) deletion ON visible_before.yes AND NOT visible_at_end.yes AND live."id" IS NULL
      CROSS JOIN LATERAL (
        SELECT deletion.tx IS NOT NULL AND EXISTS (
          SELECT FROM ${deletedRecord} deleted WHERE ${visibleSql(scope, 'deleted', beforeDeletion.relations)}) AS yes
      ) visible_when_deleted
      WHERE CASE WHEN visible_at_end.yes
        THEN visible_now.yes
          AND (candidate.changed_itself OR NOT visible_before.yes OR ${regained}) AND NOT ${changesLater}
        ELSE visible_before.yes END
      ORDER BY candidate.id LIMIT ${sql.bind(limit, 'integer')}`;
}

/** The caller's condition on a row, with the other records and shares as they are now or as `relations` say. */
function visibleSql({ feed, sql }: Scope, row: string, relations?: Relations): string {
  const condition: Predicate | null = feed.access.sharing;
  return condition === null ? 'true' : conditionSql(condition, row, tenantSchema(feed.tenantId), sql.bind, relations);
}

/** SQL that is true when the caller could see the candidate in a past state. A deleted record was there if it was changed since. */
function wasVisibleSql(scope: Scope, { isChanged, previousValues, relations }: PastState): string {
  const { object } = scope.feed;
  const deletedRecord = formerRow(scope.schema, object, 'bin.record');
  return `
        SELECT (live."id" IS NOT NULL OR bin.record_id IS NOT NULL AND ${isChanged('candidate.id')}) AND EXISTS (
          SELECT FROM (${previousValues('candidate.id')}) previous
          CROSS JOIN LATERAL jsonb_populate_record(
            CASE WHEN live."id" IS NOT NULL THEN live ELSE ${deletedRecord} END, ${fittingValues(object, 'previous.fields')}) past_record
          WHERE NOT previous.is_new AND ${visibleSql(scope, 'past_record', relations)}) AS yes`;
}

/** At some time in the window, that is right before one of the transactions that could change it. */
function atSomeTime(scope: Scope, condition: string): string {
  const beforeTransaction = scope.past((tx) => `${tx} >= cause.tx`);
  return `EXISTS (
        SELECT FROM unnest(candidate.transactions) cause(tx)
        CROSS JOIN LATERAL (${wasVisibleSql(scope, beforeTransaction)}) visible_then
        WHERE ${condition})`;
}
