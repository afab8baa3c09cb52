/**
 * What changed in an object's records since a moment, for one caller: records to put into a copy and records to drop from
 * it. The moment is a snapshot of the database: what it could not see yet is what changed since, in whatever order
 * transactions committed, so nothing is ever missed. Whether the caller could see a record at that moment is worked out
 * from the record as it is and from what was changed since. Many changes are told in stretches, each between two
 * snapshots, so that a page costs what its stretch holds and not what is still to come. Source: docs/reference/records.md.
 */

import type { Handler } from '../../../contracts/operations.ts';
import type { Predicate } from '../../../lib/access/predicate.ts';
import { tenantSchema } from '../../../lib/context.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { conditionSql, type Relations } from '../../../lib/query/sql.ts';
import type { ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { firstUuidv7 } from '../../../lib/values/ids.ts';
import { sealFor } from '../../../lib/values/sealed.ts';
import { literal } from '../../../lib/values/sql-text.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { ReadDeps } from '../read/read.ts';
import { columnName, etagOf, recordJson, storedFields, table } from '../sql.ts';
import { assertFresh, visibleObject } from '../tenants.ts';
import type { View } from '../view.ts';
import { SERVER_SQL } from './chain.ts';
import {
  DELTA_VALID_DAYS,
  type Delta,
  endAt,
  openDelta,
  type Stretch,
  sealDelta,
  syncExpired,
} from './delta-cursor.ts';
import { pageReply } from './page.ts';
import { type Parent, type Sight, sightOf } from './sight.ts';

/** Rows that came out of a backup have numbers of transactions that mean nothing here; their age tells them apart. */
const TOO_OLD_MS = 24 * 60 * 60 * 1_000;
/** Entries of the trail in one stretch, about: transactions stay whole, and some are still running. */
const STRETCH = 1_000;
/** Records that one statement looks at. */
const CHUNK = 1_000;
/** A page that has not filled up by then is answered as it is. */
const ROUND_MS = 5_000;

export const listChanges: Handler<'data.changes.list', ReadDeps> = async (deps, request, call) => {
  const { tenantId, userId } = request;
  const { take, takeClamped, cursor } = parseListQuery(call.query, 'query');
  const seal = sealFor(request, deps.sealingKey, Date.now());
  return deps.tenants.withView(tenantId, userId, async (view) => {
    const access = visibleObject(view, call.path.objectApiName);
    const sight = sightOf(view.access, access.object.apiName);
    const given = cursor === null ? null : openDelta(cursor, access.object.apiName, seal);
    const asked: Question = { view, object: access.object, sight, take, ieee754: call.ieee754Compatible ?? false };
    const round = await deps.database.tenant(tenantId, (tx) =>
      atOneMoment(tx, async () => {
        const moment = await readMoment(tx, view);
        const fresh = startAt(moment, access.object.apiName, sight, seal.now);
        if (given === null) return { entries: [], delta: fresh, more: false };
        const stale = whyExpired(given, moment, sight, seal.now);
        if (stale !== null) throw syncExpired(stale, sealDelta(fresh, seal));
        return walk(tx, asked, given, fresh);
      }),
    );
    const next = sealDelta(round.delta, seal);
    return pageReply({ take, takeClamped }, round.entries, round.more ? next : null, { resumeCursor: next });
  });
};

interface Question {
  readonly view: View;
  readonly object: ObjectMeta;
  readonly sight: Sight;
  readonly take: number;
  readonly ieee754: boolean;
}

interface Round {
  readonly entries: readonly string[];
  readonly delta: Delta;
  /** The round is not at its end. */
  readonly more: boolean;
}

interface Moment {
  readonly snapshot: string;
  readonly server: string;
}

/**
 * All statements of the work see the database as it is now. They look records up one by one, in the order of their ids, and
 * stop when the page is full: joining by hashes would read whole tables for it.
 */
async function atOneMoment<T>(tx: Tx, work: () => Promise<T>): Promise<T> {
  tx.gather();
  tx.client
    .query(
      'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off',
    )
    .catch(() => {});
  try {
    return await work();
  } finally {
    await tx.client.query('ROLLBACK');
  }
}

/**
 * What has been committed by now, up to the last transaction that left an audit row, as every change does. Numbers behind
 * it may belong to transactions that were rolled back and never reached the disk: after a crash of the database they are
 * given again, and what is written under them then must not be taken for told.
 */
async function readMoment(tx: Tx, view: View): Promise<Moment> {
  const { rows } = await tx.arrays({
    text: `SELECT s.metadata_version, s.access_version, pg_current_snapshot()::text,
      coalesce((SELECT a.tx::text FROM ${tx.schema}._audit a ORDER BY a.tx DESC LIMIT 1), '2'), ${SERVER_SQL} FROM ${tx.schema}._state s`,
  });
  const [metadataVersion, accessVersion, snapshot, last, server] = rows[0]!;
  assertFresh(view, metadataVersion, accessVersion);
  return { snapshot: endAt(snapshot as string, last as string, '3:3:'), server: server as string };
}

const startAt = ({ snapshot, server }: Moment, object: string, sight: Sight, now: number): Delta => ({
  object,
  since: now,
  server,
  sight: sight.hash,
  from: snapshot,
  first: true,
  stretch: null,
});

function whyExpired(given: Delta, { server }: Moment, sight: Sight, now: number): string | null {
  if (now - given.since > DELTA_VALID_DAYS * 86_400_000) return `The cursor is older than ${DELTA_VALID_DAYS} days.`;
  if (given.sight !== sight.hash) return 'What the caller may see has changed otherwise than by changes of records.';
  return given.server === server ? null : 'The database was restored.';
}

/** Tells what changed, stretch by stretch, until the page is full or nothing is left. `now` is where a new caller starts. */
async function walk(tx: Tx, asked: Question, given: Delta, now: Delta): Promise<Round> {
  const { take } = asked;
  // By id: a record that stands in several stretches is told once in a page, and as it is.
  const told = new Map<string, string>();
  const until = Date.now() + ROUND_MS;
  let { since, from, stretch } = given;
  const round = (more: boolean): Round => ({
    entries: [...told.keys()].sort().map((id) => told.get(id)!),
    delta: { ...given, since, from, first: given.first && more, stretch },
    more,
  });
  for (;;) {
    stretch ??= await nextStretch(tx, asked, { ...given, since, from }, now);
    const room = take - told.size;
    const { rows } = await tx.arrays(changesSql(asked, { ...given, since, from }, stretch, now.from, room + 1));
    const found = rows.filter((row) => row[0] !== null);
    for (const row of found.slice(0, room)) told.set(row[0] as string, entryOf(row));
    const [lastSeen, count] = rows[0]!.slice(4) as [string, number];
    if (found.length > room) {
      if (room > 0) stretch = { ...stretch, after: found[room - 1]![0] as string };
      if (told.size === take) return round(true);
    } else if (count === CHUNK) stretch = { ...stretch, after: lastSeen };
    else {
      const { upTo, reached, last } = stretch;
      [since, from, stretch] = [reached, upTo, null];
      if (last) return round(false);
    }
    if (Date.now() > until) return round(true);
  }
}

/** The next changes that are told together. */
async function nextStretch(tx: Tx, { object, sight }: Question, { since, from }: Delta, now: Delta): Promise<Stretch> {
  const sql = new Sql();
  const { rows } = await tx.arrays(
    sql.statement(`SELECT a.tx::text, (extract(epoch FROM a.at) * 1000)::bigint FROM ${tx.schema}._audit a
      WHERE a.object = ANY(${sql.bind(objectsOf(object, sight), 'text[]')}) AND ${unseenSql('a.tx', sql.bind(from, 'pg_snapshot'))}
      ORDER BY a.tx LIMIT 1 OFFSET ${STRETCH - 1}`),
  );
  if (rows.length === 0) return { upTo: now.from, reached: now.since, last: true, after: null };
  const [last, at] = rows[0] as [string, number];
  return {
    upTo: endAt(now.from, last, from),
    reached: Math.min(Math.max(since, at), now.since),
    last: false,
    after: null,
  };
}

/** SQL: the transaction is done by now, and a snapshot did not see it. */
const unseenSql = (tx: string, snapshot: string): string =>
  `${tx} >= pg_snapshot_xmin(${snapshot}) AND ${tx} < pg_snapshot_xmax(pg_current_snapshot()) AND NOT pg_visible_in_snapshot(${tx}, ${snapshot})`;

/** The object and those that decide about its records. */
const objectsOf = (object: ObjectMeta, sight: Sight): string[] => [
  object.apiName,
  ...sight.parents.flatMap(withAbove).map((parent) => parent.object.apiName),
];

const entryOf = ([id, change, record, version]: readonly unknown[]): string =>
  `{"id":"${id}","change":"${change}","record":${record ?? 'null'},"etag":${
    version === null ? 'null' : JSON.stringify(etagOf(Number(version)))
  }}`;

/**
 * One statement for the changes of a stretch: of CHUNK records that may have changed or come into or out of sight (`page`;
 * `own`: changed themselves). `log` is what was committed in the stretch, about the object and those that decide about its
 * records. Told is what differs between the two ends of the stretch, so that the next one can go on from there; what a
 * record is like is told as it is now. What happened behind the end is left to the stretches that follow.
 */
function changesSql(asked: Question, { from, since, first }: Delta, stretch: Stretch, now: string, limit: number) {
  const { view, object, sight, ieee754 } = asked;
  const sql = new Sql();
  const schema = `"${tenantSchema(view.tenantId)}"`;
  const records = table(schema, object.apiName);
  const name = literal(object.apiName);
  const [begin, end] = [sql.bind(from, 'pg_snapshot'), sql.bind(stretch.upTo, 'pg_snapshot')];
  const oldest = since - TOO_OLD_MS;
  const notBefore = {
    at: sql.bind(new Date(oldest).toISOString(), 'timestamptz'),
    id: sql.bind(firstUuidv7(oldest), 'uuid'),
  };
  const past = (done: (tx: string) => string) => pastOf(schema, done, notBefore, sight.readsStamps);
  const before = past((tx) => unseenSql(tx, begin));
  const within = past(
    (tx) =>
      `${tx} >= pg_snapshot_xmin(${begin}) AND ${tx} < pg_snapshot_xmax(${end}) AND NOT pg_visible_in_snapshot(${tx}, ${begin}) AND pg_visible_in_snapshot(${tx}, ${end})`,
  );
  // What was there when the record was deleted: all but what that transaction and later ones did.
  const lastSeen = past((tx) => `${tx} >= deletion.tx`);
  const sees = (row: string, relations?: Relations): string =>
    predicate(sight.node, row, tenantSchema(view.tenantId), sql, relations);
  const objects = sql.bind(objectsOf(object, sight), 'text[]');
  const { readable } = view.access.objects[object.apiName]!;
  const gone = `jsonb_populate_record(NULL::${records}, b.record)`;
  // A record that is deleted now was there if anything was done to it since, its deletion at the least.
  const wasSeen = ({ changed, undo, relations }: Past): string =>
    `SELECT (r."id" IS NOT NULL OR b.record_id IS NOT NULL AND ${changed('c.id')}) AND EXISTS (
        SELECT FROM (${undo('c.id')}) w
          CROSS JOIN LATERAL jsonb_populate_record(CASE WHEN r."id" IS NOT NULL THEN r ELSE ${gone} END, w.fields) o
          WHERE NOT w.born AND ${sees('o', relations)}) AS seen`;
  const behind = past((tx) => unseenSql(tx, end));
  // At some time in the stretch: right before one of the transactions that could change it.
  const sometime = (what: string): string =>
    `EXISTS (SELECT FROM unnest(c.causes) cause(tx), LATERAL (${wasSeen(past((tx) => `${tx} >= cause.tx`))}) y WHERE ${what})`;
  // A page that came later than its stretch leaves out what was out of sight by then, and may be again in sight by now.
  const regained = sight.node === null ? 'false' : sometime('NOT y.seen');
  const isNow = stretch.upTo === now;
  // A record that was changed once more is told then. The last stretch leaves nothing to others, or it could be for ever.
  const later = stretch.last ? 'false' : behind.changed('c.id');
  const parents = sight.parents.flatMap(withAbove);
  const links = [...new Set(parents.map(({ field }) => literal(field.apiName)))];
  // Since the stretch began records may have left the parents that they had in it, also by being deleted.
  const leftLater = `UNION ALL SELECT a.object, a.record_id, a.changes FROM ${schema}._audit a
      WHERE (${parents.map((parent) => `EXISTS (${decidedSql(parent)})`).join(' OR ')}) AND a.object = ANY(${objects}) AND ${behind.changes}`;
  const left = `left_parent AS MATERIALIZED (SELECT a.object, a.record_id, l.field, l.parent
      FROM (SELECT object, record_id, changes FROM log ${isNow ? '' : leftLater}) a
        CROSS JOIN LATERAL (VALUES ${links.map((name) => `(${name}, a.changes -> ${name} ->> 'from')`).join(', ')}) l (field, parent)
      WHERE l.parent IS NOT NULL),`;
  const text = `WITH
    log AS MATERIALIZED (SELECT a.object, a.record_id, a.kind, a.changes, a.tx FROM ${schema}._audit a
      WHERE a.object = ANY(${objects}) AND ${within.changes}),
    shared AS MATERIALIZED (${within.shared(objects)}),
    ${parents.length > 0 ? left : ''}
    page AS MATERIALIZED (SELECT u.id, bool_or(u.own) AS own, array_agg(DISTINCT u.tx) AS causes FROM (
        SELECT record_id AS id, tx, true AS own FROM log WHERE object = ${name}
        UNION ALL SELECT record_id, tx, false FROM shared WHERE object = ${name}
        ${sight.parents.map((parent) => `UNION ALL SELECT id, tx, false FROM (${belowSql(schema, object, parent)}) t`).join(' ')}
      ) u${stretch.after === null ? '' : ` WHERE u.id > ${sql.bind(stretch.after, 'uuid')}`} GROUP BY u.id ORDER BY u.id LIMIT ${CHUNK})
    SELECT e.id::text, e.change, e.record, e.version, p.last, p.count
    FROM (SELECT max(id::text) AS last, count(*)::int AS count FROM page) p LEFT JOIN LATERAL (
      SELECT c.id, CASE WHEN x.seen THEN 'upserted' WHEN r."id" IS NULL AND d.seen THEN 'deleted' ELSE 'accessLost' END AS change,
        CASE WHEN x.seen AND n.seen THEN ${recordJson('r', readable, ieee754)}::text END AS record,
        CASE WHEN x.seen AND n.seen THEN r."recordVersion" END AS version
      FROM page c
      LEFT JOIN ${records} r ON r."id" = c.id
      LEFT JOIN ${schema}._recycle_bin b ON b.object = ${name} AND b.record_id = c.id AND r."id" IS NULL
      CROSS JOIN LATERAL (SELECT r."id" IS NOT NULL AND coalesce(${sees('r')}, false) AS seen) n
      CROSS JOIN LATERAL (${isNow ? 'SELECT n.seen' : wasSeen(behind)}) x
      CROSS JOIN LATERAL (SELECT w.seen${first ? ` OR NOT x.seen AND ${sometime('y.seen')}` : ''} AS seen FROM (${wasSeen(before)}) w) t
      LEFT JOIN LATERAL (SELECT a.tx FROM ${schema}._audit a WHERE a.record_id = c.id AND a.kind = 'delete'
        ORDER BY a.record_version DESC LIMIT 1) deletion ON t.seen AND NOT x.seen AND r."id" IS NULL
      CROSS JOIN LATERAL (SELECT deletion.tx IS NOT NULL AND EXISTS (SELECT FROM ${gone} o WHERE ${sees('o', lastSeen.relations)}) AS seen) d
      WHERE CASE WHEN x.seen THEN n.seen AND (c.own OR NOT t.seen OR ${regained}) AND NOT ${later} ELSE t.seen END
      ORDER BY c.id LIMIT ${sql.bind(limit, 'integer')}) e ON true`;
  return sql.statement(text);
}

const predicate = (node: Predicate | null, row: string, schema: string, sql: Sql, relations?: Relations): string =>
  node === null ? 'true' : conditionSql(node, row, schema, sql.bind, relations);

const withAbove = (parent: Parent): Parent[] => [parent, ...parent.parents.flatMap(withAbove)];

/** SQL of the ids of parents that were changed in what decides, or shared otherwise, and of the transactions. */
function decidedSql({ object, deciding }: Parent): string {
  const name = literal(object.apiName);
  const fields = deciding?.map(literal).join(', ');
  const decides = fields ? ` AND (kind NOT IN ('update', 'transition') OR changes ?| ARRAY[${fields}])` : '';
  return `SELECT record_id AS id, tx FROM log WHERE object = ${name}${decides} UNION SELECT record_id, tx FROM shared WHERE object = ${name}`;
}

/** SQL of the ids of records that are or were below such parents, and below those below them, and of the transactions. */
function belowSql(schema: string, child: ObjectMeta, parent: Parent): string {
  const above = [decidedSql(parent), ...parent.parents.map((next) => belowSql(schema, parent.object, next))];
  return `SELECT c.id, p.tx FROM (${above.join(' UNION ')}) p CROSS JOIN LATERAL (
      SELECT t."id" AS id FROM ${table(schema, child.apiName)} t WHERE t.${columnName(parent.field)} = p.id
      UNION ALL SELECT l.record_id FROM left_parent l
        WHERE l.object = ${literal(child.apiName)} AND l.field = ${literal(parent.field.apiName)} AND l.parent = p.id::text) c`;
}

type Past = ReturnType<typeof pastOf>;

/** Shares and records without what was `done`, an SQL boolean of a transaction. */
function pastOf(
  schema: string,
  done: (tx: string) => string,
  notBefore: { readonly at: string; readonly id: string },
  withStamps: boolean,
) {
  const changes = `a.kind IS NOT NULL AND a.at > ${notBefore.at} AND ${done('a.tx')}`;
  /** Ids carry their time, too, and the index of a record's entries ends in them. */
  const changesOf = (id: string): string => `a.record_id = ${id} AND a.audit_id > ${notBefore.id} AND ${changes}`;
  /** Not EXISTS, which may be worked out for all records at once. */
  const changed = (id: string): string =>
    `(SELECT true FROM ${schema}._audit a WHERE ${changesOf(id)} LIMIT 1) IS NOT NULL`;
  /** What a write changes by itself, from the last one that the snapshot saw. */
  const stamps = (id: string): string =>
    `coalesce((SELECT jsonb_build_object('updatedAt', a.at, 'updatedById', a.user_id, 'recordVersion', a.record_version)
      FROM ${schema}._audit a WHERE a.record_id = ${id} AND a.kind IS NOT NULL AND NOT (${done('a.tx')})
      ORDER BY a.record_version DESC LIMIT 1), '{}')`;
  /** What was changed of a record since: whether it came into being, and the values that it had. */
  const undo = (id: string): string => {
    const own = `${schema}._audit a`;
    const where = `WHERE ${changesOf(id)}`;
    return `SELECT coalesce((SELECT a.kind IN ('create', 'restore') FROM ${own} ${where}
          ORDER BY a.record_version, (a.kind = 'delete')::int LIMIT 1), false) AS born,
        (SELECT coalesce(jsonb_object_agg(e.key, e.value -> 'from' ORDER BY a.record_version DESC, (a.kind = 'delete')::int DESC), '{}')
          FROM ${own} CROSS JOIN LATERAL jsonb_each(a.changes) e ${where})${withStamps ? ` || ${stamps(id)}` : ''} AS fields`;
  };
  const columns = 'object, record_id, principal_type, principal_id, access';
  const relations: Relations = {
    shares: `(SELECT ${columns} FROM ${schema}._shares WHERE NOT (${done('tx')})
      UNION ALL SELECT ${columns} FROM ${schema}._revoked_shares WHERE ${done('tx')} AND NOT (${done('granted_tx')}))`,
    records: (object) => {
      const records = table(schema, object.apiName);
      const rest = storedFields(object)
        .map(columnName)
        .filter((column) => column !== '"id"')
        .map((column) => `x.${column}`)
        .join(', ');
      const before = (id: string, row: string): string =>
        `CROSS JOIN LATERAL (${undo(id)}) w CROSS JOIN LATERAL jsonb_populate_record(${row}, w.fields) x`;
      return `(SELECT p."id", ${rest} FROM ${records} p ${before('p."id"', 'p')} WHERE NOT w.born
        UNION ALL SELECT b.record_id AS "id", ${rest} FROM ${schema}._recycle_bin b
          ${before('b.record_id', `jsonb_populate_record(NULL::${records}, b.record)`)}
          WHERE b.object = ${literal(object.apiName)} AND NOT w.born
            AND ${changed('b.record_id')})`;
    },
  };
  // A share that was taken back by now was given by a transaction of its own.
  const shared = (objects: string): string =>
    [
      ['_shares', 'tx'],
      ['_revoked_shares', 'tx'],
      ['_revoked_shares', 'granted_tx'],
    ]
      .map(
        ([from, tx]) =>
          `SELECT object, record_id, ${tx} AS tx FROM ${schema}.${from} WHERE object = ANY(${objects}) AND ${done(tx!)}`,
      )
      .join(' UNION ');
  return { changes, changed, undo, relations, shared };
}
