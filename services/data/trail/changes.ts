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
import type { Tx } from '../../../mixins/database/database.ts';
import type { Read } from '../reads.ts';
import { columnName, etagOf, literal, Sql, storedFields, table } from '../sql.ts';
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

export const listChanges: Read = async (deps, request, call) => {
  const { tenantId, userId, clientId } = request;
  const { take, takeClamped, cursor } = parseListQuery(call.query, 'query');
  const seal: CursorSeal = { key: deps.cursorKey, now: Date.now(), tenantId, userId, clientId };
  return deps.tenants.withView(tenantId, userId, async (view) => {
    const access = visibleObject(view, call.path['objectApiName'] ?? '');
    const sight = sightOf(view.access, access);
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
    after = full ? (found[room - 1]![4] as string) : segment.upTo;
    done = joined(done, { upTo: after, snapshot: moment.snapshot });
    if (full) break;
    pending = pending.slice(1);
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
 * One statement for the changes in one range of ids. `log` is what was committed since the snapshot, about the object and
 * those that decide about its records; `first` says of each record whether it came into being since, `was` the values it
 * had. `touched` are the records that may have changed or come into or out of sight.
 */
function changesSql(asked: Question, segment: Segment, after: string | null, limit: number, since: number) {
  const { view, object, sight, ieee754 } = asked;
  const sql = new Sql();
  const schema = `"${tenantSchema(view.tenantId)}"`;
  const name = literal(object.apiName);
  const past = pastOf(schema, sql.bind(segment.snapshot, 'pg_snapshot'));
  const range = [
    ...(after === null ? [] : [`u.id > ${sql.bind(after, 'uuid')}`]),
    ...(segment.upTo === null ? [] : [`u.id <= ${sql.bind(segment.upTo, 'uuid')}`]),
  ];
  const sees = (row: string, relations?: Relations): string =>
    predicate(sight.node, row, tenantSchema(view.tenantId), sql, relations);
  const objects = sql.bind([object.apiName, ...sight.parents.flatMap(namesOf)], 'text[]');
  const text = `WITH
    log AS MATERIALIZED (SELECT a.object, a.record_id, a.kind, a.record_version, a.changes FROM ${schema}._audit a
      WHERE ${past.since('a.tx')} AND a.object = ANY(${objects}) AND a.kind IS NOT NULL
        AND a.at > ${sql.bind(new Date(since - TOO_OLD_MS).toISOString(), 'timestamptz')}),
    first AS MATERIALIZED (SELECT object, record_id,
        (array_agg(kind ORDER BY record_version, (kind = 'delete')::int))[1] IN ('create', 'restore') AS born
      FROM log GROUP BY object, record_id),
    was AS MATERIALIZED (SELECT l.object, l.record_id,
        jsonb_object_agg(e.key, e.value -> 'from' ORDER BY l.record_version DESC, (l.kind = 'delete')::int DESC) AS fields
      FROM log l CROSS JOIN LATERAL jsonb_each(l.changes) e GROUP BY l.object, l.record_id),
    shared AS MATERIALIZED (${past.shared(objects)}),
    touched AS MATERIALIZED (SELECT u.id FROM (${touchedSql(schema, object, sight.parents)}) u${
      range.length ? ` WHERE ${range.join(' AND ')}` : ''
    })
    SELECT ${MOMENT}, e.id::text, e.change, e.record, e.version FROM ${schema}._state s LEFT JOIN LATERAL (
      SELECT c.id, CASE WHEN n.seen THEN 'upserted' WHEN r."id" IS NULL AND d.seen THEN 'deleted' ELSE 'accessLost' END AS change,
        CASE WHEN n.seen THEN ${recordJsonSql(object, view.access.objects[object.apiName]!.readable, { ieee754Compatible: ieee754 })} END AS record,
        CASE WHEN n.seen THEN r."recordVersion" END AS version
      FROM touched c
      LEFT JOIN ${table(schema, object.apiName)} r ON r."id" = c.id
      LEFT JOIN ${schema}._recycle_bin b ON b.object = ${name} AND b.record_id = c.id AND r."id" IS NULL
      LEFT JOIN first f ON f.object = ${name} AND f.record_id = c.id
      LEFT JOIN was w ON w.object = ${name} AND w.record_id = c.id
      CROSS JOIN LATERAL (SELECT r."id" IS NOT NULL AND coalesce(${sees('r')}, false) AS seen) n
      CROSS JOIN LATERAL (SELECT (r."id" IS NOT NULL OR b.record_id IS NOT NULL) AND NOT coalesce(f.born, false) AND EXISTS (
        SELECT FROM jsonb_populate_record(CASE WHEN r."id" IS NOT NULL THEN r ELSE jsonb_populate_record(NULL::${table(schema, object.apiName)}, b.record) END,
          coalesce(w.fields, '{}')) o WHERE ${sees('o', past.relations)}) AS seen) t
      CROSS JOIN LATERAL (SELECT r."id" IS NULL AND EXISTS (
        SELECT FROM jsonb_populate_record(NULL::${table(schema, object.apiName)}, b.record) o WHERE ${sees('o', past.relations)}) AS seen) d
      WHERE CASE WHEN n.seen THEN f.record_id IS NOT NULL OR NOT t.seen ELSE t.seen END
      ORDER BY c.id LIMIT ${sql.bind(limit, 'integer')}) e ON true`;
  return sql.statement(text);
}

const predicate = (node: PlanNode | null, row: string, schema: string, sql: Sql, relations?: Relations): string =>
  node === null ? 'true' : conditionSql(node, row, schema, sql.bind, relations);

const namesOf = ({ object, parents }: Parent): string[] => [object.apiName, ...parents.flatMap(namesOf)];

/** SQL of the ids of records that were changed or shared otherwise, and of those below such. */
function touchedSql(schema: string, object: ObjectMeta, parents: readonly Parent[]): string {
  const name = literal(object.apiName);
  return [
    `SELECT record_id AS id FROM log WHERE object = ${name}`,
    `SELECT record_id AS id FROM shared WHERE object = ${name}`,
    ...parents.map(
      (parent) =>
        `SELECT t."id" AS id FROM ${table(schema, object.apiName)} t WHERE t.${columnName(parent.field)} IN (${touchedSql(schema, parent.object, parent.parents)})`,
    ),
  ].join(' UNION ');
}

/** Shares and records as a snapshot saw them. `log`, `first` and `was` are those of changesSql. */
function pastOf(schema: string, snapshot: string) {
  const since = (tx: string): string =>
    `${tx} >= pg_snapshot_xmin(${snapshot}) AND ${tx} < pg_snapshot_xmax(pg_current_snapshot()) AND NOT pg_visible_in_snapshot(${tx}, ${snapshot})`;
  const columns = 'object, record_id, principal_type, principal_id, access';
  const relations: Relations = {
    shares: `(SELECT ${columns} FROM ${schema}._shares WHERE NOT (${since('tx')})
      UNION ALL SELECT ${columns} FROM ${schema}._revoked_shares WHERE ${since('tx')} AND NOT (${since('granted_tx')}))`,
    records: (object) => {
      const name = literal(object.apiName);
      const stored = storedFields(object).map((field) => columnName(field));
      const rest = stored.filter((column) => column !== '"id"').map((column) => `x.${column}`);
      const populated = (row: string): string => `jsonb_populate_record(${row}, coalesce(w.fields, '{}')) x`;
      return `(SELECT p."id", ${rest.join(', ')} FROM ${table(schema, object.apiName)} p
          LEFT JOIN was w ON w.object = ${name} AND w.record_id = p."id" CROSS JOIN LATERAL ${populated('p')}
          WHERE NOT EXISTS (SELECT FROM first f WHERE f.object = ${name} AND f.record_id = p."id" AND f.born)
        UNION ALL SELECT b.record_id AS "id", ${rest.join(', ')} FROM ${schema}._recycle_bin b
          JOIN first f ON f.object = ${name} AND f.record_id = b.record_id AND NOT f.born
          LEFT JOIN was w ON w.object = ${name} AND w.record_id = b.record_id
          CROSS JOIN LATERAL ${populated(`jsonb_populate_record(NULL::${table(schema, object.apiName)}, b.record)`)}
          WHERE b.object = ${name})`;
    },
  };
  const shared = (objects: string): string =>
    ['_shares', '_revoked_shares']
      .map(
        (from) => `SELECT object, record_id FROM ${schema}.${from} WHERE object = ANY(${objects}) AND ${since('tx')}`,
      )
      .join(' UNION ');
  return { since, relations, shared };
}
