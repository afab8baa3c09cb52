/**
 * What changed in an object's records since a moment, for one caller: records to put into a copy and records to drop from
 * it. The moment is a snapshot of the database: what it could not see yet is what changed since, in whatever order
 * transactions committed, so nothing is ever missed. Whether the caller could see a record at that moment is worked out
 * from the record as it is and from what was changed since. Source: docs/reference/records.md.
 */
import { tenantSchema } from '../../../lib/context.ts';
import type { CursorSeal } from '../../../lib/query/cursor.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { conditionSql, type Relations, recordJsonSql } from '../../../lib/query/sql.ts';
import type { PlanNode } from '../../../lib/query/types.ts';
import type { ObjectMeta } from '../../../lib/snapshot/types.ts';
import { literal } from '../../../lib/sql-text.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import type { Read } from '../reads.ts';
import { columnName, etagOf, Sql, storedFields, table } from '../sql.ts';
import { assertFresh, type View, visibleObject } from '../tenants.ts';
import { SERVER_SQL } from './chain.ts';
import {
  DELTA_PAGES_MAX,
  DELTA_VALID_DAYS,
  type Delta,
  openDelta,
  type Segment,
  sealDelta,
  syncExpired,
} from './delta-cursor.ts';
import { pageOf } from './history.ts';
import { type Parent, type Sight, sightOf } from './sight.ts';

/** Rows that came out of a backup have numbers of transactions that mean nothing here; their age tells them apart. */
const TOO_OLD_MS = 24 * 60 * 60 * 1_000;
/** Records that one statement looks at. */
const CHUNK = 1_000;
/** A page that has not filled up by then is answered as it is. */
const ROUND_MS = 5_000;

export const listChanges: Read = async (deps, request, call) => {
  const { tenantId, userId, clientId } = request;
  const { take, takeClamped, cursor } = parseListQuery(call.query, 'query');
  const seal: CursorSeal = { key: deps.cursorKey, now: Date.now(), tenantId, userId, clientId };
  return deps.tenants.withView(tenantId, userId, async (view) => {
    const access = visibleObject(view, call.path['objectApiName'] ?? '');
    const sight = sightOf(view.access, access.object.apiName);
    const given = cursor === null ? null : openDelta(cursor, access.object.apiName, seal);
    const asked: Question = { view, object: access.object, sight, take, ieee754: call.ieee754Compatible ?? false };
    const round = await deps.database.tenant(tenantId, (tx) =>
      atOneMoment(tx, async () => {
        const fresh = (moment: Moment): Delta => startAt(moment, access.object.apiName, sight, seal.now);
        if (given === null) return { entries: [], delta: fresh(await readMoment(tx, view)), more: false };
        const stale = whyExpired(given, sight, seal.now);
        const walked = stale === null ? await walk(tx, asked, given, seal.now) : null;
        if (walked && !('expired' in walked)) return walked;
        throw syncExpired(stale ?? walked!.expired, sealDelta(fresh(await readMoment(tx, view)), seal));
      }),
    );
    const next = sealDelta(round.delta, seal);
    return {
      ...(takeClamped ? { headers: { 'X-Effective-Take': String(take) } } : {}),
      body: pageOf(round.entries, round.more ? next : null, `,"resumeCursor":"${next}"`),
    };
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

/** All statements of the work see the database as it is now. */
async function atOneMoment<T>(tx: Tx, work: () => Promise<T>): Promise<T> {
  tx.client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY').catch(() => {});
  try {
    return await work();
  } finally {
    await tx.client.query('ROLLBACK');
  }
}

const MOMENT = `s.metadata_version, s.access_version, pg_current_snapshot()::text, ${SERVER_SQL}`;

function momentOf(view: View, row: readonly unknown[]): Moment {
  assertFresh(view, row[0], row[1]);
  return { snapshot: row[2] as string, server: row[3] as string };
}

async function readMoment(tx: Tx, view: View): Promise<Moment> {
  const { rows } = await tx.arrays({ text: `SELECT ${MOMENT} FROM ${tx.schema}._state s` });
  return momentOf(view, rows[0]!);
}

const startAt = ({ snapshot, server }: Moment, object: string, sight: Sight, now: number): Delta => ({
  object,
  since: now,
  begun: now,
  server,
  sight: sight.hash,
  after: null,
  pending: [{ upTo: null, snapshot }],
  done: [],
});

function whyExpired(given: Delta, sight: Sight, now: number): string | null {
  if (now - given.since > DELTA_VALID_DAYS * 86_400_000) return `The cursor is older than ${DELTA_VALID_DAYS} days.`;
  if (given.sight !== sight.hash) return 'What the caller may see has changed otherwise than by changes of records.';
  if (given.done.length + given.pending.length > DELTA_PAGES_MAX)
    return `The changes fill more than ${DELTA_PAGES_MAX} pages.`;
  return null;
}

/** Tells what changed, range by range, until the page is full or all ranges have been walked. */
async function walk(tx: Tx, asked: Question, given: Delta, now: number): Promise<Round | { expired: string }> {
  const { take } = asked;
  const begun = given.after === null ? now : given.begun;
  let { after, pending, done } = given;
  const entries: string[] = [];
  const until = Date.now() + ROUND_MS;
  while (pending.length > 0) {
    const [segment] = pending as [Segment];
    const statement = changesSql(asked, segment, after, take - entries.length + 1, given.since);
    const { rows } = await tx.arrays(statement);
    const moment = momentOf(asked.view, rows[0]!);
    if (moment.server !== given.server) return { expired: 'The database was restored.' };
    const found = rows.filter((row) => row[4] !== null);
    const room = take - entries.length;
    entries.push(...found.slice(0, room).map(entryOf));
    const full = found.length > room;
    // With no room at all the range is left as it is; the page has told everything before it.
    if (full && room === 0) break;
    const chunked = rows[0]![8] === CHUNK;
    after = full ? (found[room - 1]![4] as string) : chunked ? (rows[0]![9] as string) : segment.upTo;
    done = joined(done, { upTo: after, snapshot: moment.snapshot });
    if (full) break;
    if (!chunked) pending = pending.slice(1);
    else if (Date.now() > until) break;
  }
  if (pending.length > 0) return { entries, delta: { ...given, begun, after, pending, done }, more: true };
  return { entries, delta: { ...given, since: begun, begun, after: null, pending: done, done: [] }, more: false };
}

/** Ranges that were told at the same moment are one. */
function joined(done: readonly Segment[], next: Segment): readonly Segment[] {
  const last = done.at(-1);
  return last?.snapshot === next.snapshot ? [...done.slice(0, -1), next] : [...done, next];
}

const entryOf = (row: readonly unknown[]): string =>
  `{"id":"${row[4]}","change":"${row[5]}","record":${row[6] ?? 'null'},"etag":${
    row[7] === null ? 'null' : JSON.stringify(etagOf(Number(row[7])))
  }}`;

/**
 * One statement for the changes in one range of ids, of CHUNK records that may have changed or come into or out of sight
 * (`page`; `own`: changed themselves). `log` is what was committed since the snapshot, about the object and those that
 * decide about its records.
 */
function changesSql(asked: Question, segment: Segment, after: string | null, limit: number, since: number) {
  const { view, object, sight, ieee754 } = asked;
  const sql = new Sql();
  const schema = `"${tenantSchema(view.tenantId)}"`;
  const records = table(schema, object.apiName);
  const name = literal(object.apiName);
  const snapshot = sql.bind(segment.snapshot, 'pg_snapshot');
  const notBefore = sql.bind(new Date(since - TOO_OLD_MS).toISOString(), 'timestamptz');
  const past = pastOf(
    schema,
    (tx) =>
      `${tx} >= pg_snapshot_xmin(${snapshot}) AND ${tx} < pg_snapshot_xmax(pg_current_snapshot()) AND NOT pg_visible_in_snapshot(${tx}, ${snapshot})`,
    notBefore,
    sight.readsStamps,
  );
  // What was there when the record was deleted: all but what that transaction and later ones did.
  const lastSeen = pastOf(schema, (tx) => `${tx} >= deletion.tx`, notBefore, sight.readsStamps);
  const range = [
    ...(after === null ? [] : [`u.id > ${sql.bind(after, 'uuid')}`]),
    ...(segment.upTo === null ? [] : [`u.id <= ${sql.bind(segment.upTo, 'uuid')}`]),
  ];
  const sees = (row: string, relations?: Relations): string =>
    predicate(sight.node, row, tenantSchema(view.tenantId), sql, relations);
  const objects = sql.bind([object.apiName, ...sight.parents.flatMap(namesOf)], 'text[]');
  const { readable } = view.access.objects[object.apiName]!;
  const gone = `jsonb_populate_record(NULL::${records}, b.record)`;
  const text = `WITH
    log AS MATERIALIZED (SELECT a.object, a.record_id, a.kind, a.changes FROM ${schema}._audit a
      WHERE a.object = ANY(${objects}) AND ${past.changes}),
    shared AS MATERIALIZED (${past.shared(objects)}),
    page AS MATERIALIZED (SELECT u.id, bool_or(u.own) AS own FROM (
        SELECT record_id AS id, true AS own FROM log WHERE object = ${name}
        UNION ALL SELECT record_id, false FROM shared WHERE object = ${name}
        ${sight.parents.map((parent) => `UNION ALL SELECT t."id", false FROM ${records} t WHERE t.${columnName(parent.field)} IN (${touchedSql(schema, parent)})`).join(' ')}
      ) u${range.length ? ` WHERE ${range.join(' AND ')}` : ''} GROUP BY u.id ORDER BY u.id LIMIT ${CHUNK})
    SELECT ${MOMENT}, e.id::text, e.change, e.record, e.version, (SELECT count(*)::int FROM page),
      (SELECT id::text FROM page ORDER BY id DESC LIMIT 1)
    FROM ${schema}._state s LEFT JOIN LATERAL (
      SELECT c.id, CASE WHEN n.seen THEN 'upserted' WHEN r."id" IS NULL AND d.seen THEN 'deleted' ELSE 'accessLost' END AS change,
        CASE WHEN n.seen THEN ${recordJsonSql(object, readable, { ieee754Compatible: ieee754 })} END AS record,
        CASE WHEN n.seen THEN r."recordVersion" END AS version
      FROM page c
      LEFT JOIN ${records} r ON r."id" = c.id
      LEFT JOIN ${schema}._recycle_bin b ON b.object = ${name} AND b.record_id = c.id AND r."id" IS NULL
      CROSS JOIN LATERAL (SELECT r."id" IS NOT NULL AND coalesce(${sees('r')}, false) AS seen) n
      CROSS JOIN LATERAL (SELECT (r."id" IS NOT NULL OR b.record_id IS NOT NULL) AND EXISTS (
        SELECT FROM (${past.undo('c.id')}) w
          CROSS JOIN LATERAL jsonb_populate_record(CASE WHEN r."id" IS NOT NULL THEN r ELSE ${gone} END, w.fields) o
          WHERE NOT w.born AND ${sees('o', past.relations)}) AS seen) t
      LEFT JOIN LATERAL (SELECT a.tx FROM ${schema}._audit a WHERE a.record_id = c.id AND a.kind = 'delete'
        ORDER BY a.record_version DESC LIMIT 1) deletion ON t.seen AND r."id" IS NULL
      CROSS JOIN LATERAL (SELECT deletion.tx IS NOT NULL AND EXISTS (SELECT FROM ${gone} o WHERE ${sees('o', lastSeen.relations)}) AS seen) d
      WHERE CASE WHEN n.seen THEN c.own OR NOT t.seen ELSE t.seen END
      ORDER BY c.id LIMIT ${sql.bind(limit, 'integer')}) e ON true`;
  return sql.statement(text);
}

const predicate = (node: PlanNode | null, row: string, schema: string, sql: Sql, relations?: Relations): string =>
  node === null ? 'true' : conditionSql(node, row, schema, sql.bind, relations);

const namesOf = ({ object, parents }: Parent): string[] => [object.apiName, ...parents.flatMap(namesOf)];

/** SQL of the ids of parents that were changed in what decides or shared otherwise, and of those below such. */
function touchedSql(schema: string, { object, parents, deciding }: Parent): string {
  const name = literal(object.apiName);
  const fields = deciding?.map(literal).join(', ');
  const decides = fields ? ` AND (kind NOT IN ('update', 'transition') OR changes ?| ARRAY[${fields}])` : '';
  return [
    `SELECT record_id AS id FROM log WHERE object = ${name}${decides}`,
    `SELECT record_id AS id FROM shared WHERE object = ${name}`,
    ...parents.map(
      (parent) =>
        `SELECT t."id" AS id FROM ${table(schema, object.apiName)} t WHERE t.${columnName(parent.field)} IN (${touchedSql(schema, parent)})`,
    ),
  ].join(' UNION ');
}

/** Shares and records without what was done `since`, an SQL boolean of a transaction. */
function pastOf(schema: string, since: (tx: string) => string, notBefore: string, withStamps: boolean) {
  const changes = `a.kind IS NOT NULL AND a.at > ${notBefore} AND ${since('a.tx')}`;
  /** What a write changes by itself, from the last one that the snapshot saw. */
  const stamps = (id: string): string =>
    `coalesce((SELECT jsonb_build_object('updatedAt', a.at, 'updatedById', a.user_id, 'recordVersion', a.record_version)
      FROM ${schema}._audit a WHERE a.record_id = ${id} AND a.kind IS NOT NULL AND NOT (${since('a.tx')})
      ORDER BY a.record_version DESC LIMIT 1), '{}')`;
  /** What was changed of a record since: whether it came into being, and the values that it had. */
  const undo = (id: string): string => {
    const own = `${schema}._audit a`;
    const where = `WHERE a.record_id = ${id} AND ${changes}`;
    return `SELECT coalesce((SELECT a.kind IN ('create', 'restore') FROM ${own} ${where}
          ORDER BY a.record_version, (a.kind = 'delete')::int LIMIT 1), false) AS born,
        (SELECT coalesce(jsonb_object_agg(e.key, e.value -> 'from' ORDER BY a.record_version DESC, (a.kind = 'delete')::int DESC), '{}')
          FROM ${own} CROSS JOIN LATERAL jsonb_each(a.changes) e ${where})${withStamps ? ` || ${stamps(id)}` : ''} AS fields`;
  };
  const columns = 'object, record_id, principal_type, principal_id, access';
  const relations: Relations = {
    shares: `(SELECT ${columns} FROM ${schema}._shares WHERE NOT (${since('tx')})
      UNION ALL SELECT ${columns} FROM ${schema}._revoked_shares WHERE ${since('tx')} AND NOT (${since('granted_tx')}))`,
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
            AND EXISTS (SELECT FROM ${schema}._audit a WHERE a.record_id = b.record_id AND ${changes}))`;
    },
  };
  const shared = (objects: string): string =>
    ['_shares', '_revoked_shares']
      .map(
        (from) => `SELECT object, record_id FROM ${schema}.${from} WHERE object = ANY(${objects}) AND ${since('tx')}`,
      )
      .join(' UNION ');
  return { changes, undo, relations, shared };
}
