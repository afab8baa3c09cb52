/**
 * Duties of a child's write to the rollups of its parents. The triggers do the work; here they learn in whose name,
 * and the parents are locked before the child, as in every write, so that no two writers wait for each other in a
 * cycle. Source: docs/decisions/rollups-by-triggers.md.
 */

import { ownEntry } from '../../../lib/schema/lookup.ts';
import {
  CHANGED_ALONG,
  type ParentLock,
  parentLocks,
  type RollupEdge,
  rollupEdges,
} from '../../../lib/schema/rollups.ts';
import type { Snapshot } from '../../../lib/schema/snapshot.ts';
import { memoize } from '../../../lib/values/memoize.ts';
import { identifier } from '../../../lib/values/sql-text.ts';

import { type Placeholders, Sql } from '../../../mixins/database/sql.ts';
import { runOf } from '../../../mixins/mutation/audit.ts';
import { reachSql, table } from '../sql.ts';
import { noteEffect } from './check-only.ts';

import type { ResolvedReferences, Write } from './write.ts';

const edgesOfSnapshot = memoize((objects: Snapshot['objects']): readonly RollupEdge[] => rollupEdges(objects));

const edgesOf = ({ view }: Pick<Write, 'view'>): readonly RollupEdge[] => edgesOfSnapshot(view.snapshot.objects);

/** Triggers bring the rollups of parents up to date when a record of the object changes. */
export const hasFollowers = (write: Write): boolean =>
  edgesOf(write).some((edge) => edge.child === write.object.apiName);

/**
 * A WHERE clause, always true, for the statement that begins a write: the triggers learn from it who acts, until the
 * transaction ends. Empty where no trigger asks: a delete may touch any object, other writes their own.
 */
export function actorSql(write: Write, { of }: Placeholders<Write>, anyObject = false): string {
  if (!(anyObject ? edgesOf(write).length > 0 : hasFollowers(write))) return '';
  return ` WHERE set_config('app.actor', ${of(actorOf, 'text')}, true) IS NOT NULL`;
}

function actorOf({ unit, call }: Write): string {
  const { request, key } = unit;
  return JSON.stringify({
    // A write that is only tried out leaves no trail; noteRollups asks what it would have been about.
    checkOnly: unit.checkOnly,
    userId: request.userId,
    clientId: request.clientId,
    agentRunId: runOf(request),
    requestId: request.requestId,
    channel: request.channel,
    ip: request.ip,
    operationId: call.operationId,
    key: key.key,
    transactionId: unit.transactionId,
    transactionSize: 1,
  });
}

/** For a dry run: the parents that the caller can see and whose rollups followed. */
export async function noteRollups(write: Write): Promise<void> {
  if (!write.unit.checkOnly || edgesOf(write).length === 0) return;
  const {
    view,
    unit: { schema, tx },
  } = write;
  const followed = await tx.all<Followed>({
    text: `SELECT trial ->> 'object' AS object, trial ->> 'id' AS id, trial -> 'fields' AS fields
      FROM jsonb_array_elements(nullif(current_setting('app.rollup_trials', true), '')::jsonb) trial`,
  });
  const others = followed.filter(({ id }) => id !== write.id);
  for (const [apiName, moved] of Map.groupBy(others, ({ object }) => object)) {
    const object = ownEntry(view.access.objects, apiName)?.object;
    if (!object) continue;
    const sql = new Sql();
    const ids = sql.bind([...new Set(moved.map(({ id }) => id))], 'uuid[]');
    const seen = await tx.all<{ id: string }>(
      sql.statement(`SELECT t."id" FROM ${table(schema, apiName)} t
        WHERE t."id" = ANY(${ids}) AND ${reachSql(view, sql, apiName, 'read', 't')}`),
    );
    const visible = new Set(seen.map(({ id }) => id));
    const fields = [...new Set(moved.filter(({ id }) => visible.has(id)).flatMap((item) => item.fields))];
    const [only, ...more] = visible;
    if (only === undefined) continue;
    if (more.length === 0) noteEffect(write, 'update', object, { id: only, fields });
    else noteEffect(write, 'update', object, { id: null, count: visible.size, fields });
  }
}

/** A record whose rollups a dry run has changed, as the triggers have noted it. */
interface Followed {
  readonly object: string;
  readonly id: string;
  readonly fields: readonly string[];
}

/** The edges along which a write of a record passes; `changed` null: the record comes or goes. */
const edgesFrom = (
  edges: readonly RollupEdge[],
  object: string,
  changed: ReadonlySet<string> | null,
): readonly RollupEdge[] =>
  edges.filter(
    (edge) =>
      edge.child === object &&
      (changed === null || [...edge.reads].some((name) => changed.has(name) || CHANGED_ALONG.includes(name))),
  );

/** A change of the record may move on rollups of its own: it may be its own parent, or that of its parent. */
export function movesItself(write: Write): boolean {
  const edges = edgesOf(write);
  const { apiName } = write.object;
  const first = edgesFrom(edges, apiName, new Set(write.changed.map((item) => item.field.apiName)));
  const passed = parentLocks(
    edges,
    first.map((edge) => ({ edge, ids: '' })),
    () => '',
  );
  return passed.some(({ object }) => object === apiName);
}

interface ParentLocks {
  /** To be put before the statement takes or makes the record; empty: there is nothing to lock. */
  readonly ctes: readonly string[];
  /** A condition, beginning with AND, under which the record may be locked or made after them. */
  readonly after: string;
}

/** A reference that effects of a write will set, in its own record or in one that they create. */
export interface PendingReference {
  readonly objectApiName: string;
  readonly field: string;
  /** The record that it will name. */
  readonly id: string;
}

/** Records that are deleted or restored together with the one that a write is about. */
export interface RelatedRecords {
  readonly object: string;
  /** SQL query of the ids that a reference field of theirs names. */
  readonly named: (referenceField: string) => string;
}

/** True when rollups depend on a reference. */
export const feedsRollups = (write: Write, object: string, field: string): boolean =>
  edgesOf(write).some((edge) => edge.child === object && edge.referenceField === field);

interface AffectedRecord {
  readonly object: string;
  /** SQL of the id of the record concerned; null: it does not exist yet. */
  readonly id: string | null;
  /** Fields that the write gives; null: the record comes or goes. */
  readonly changed: ReadonlySet<string> | null;
  /** References that the write sets. */
  readonly moves?: ResolvedReferences;
  /** References that the write will set later; ids as SQL. */
  readonly pending?: readonly PendingReference[];
  readonly related?: readonly RelatedRecords[];
  /** Condition for taking the first lock, beginning with AND. */
  readonly gate: string;
}

/**
 * CTEs parents0, parents1, … that lock the parents of records whose rollups a write concerns, in the order of all
 * writers.
 */
export function parentLocksSql(
  write: Write,
  { object, id, changed, moves, pending = [], related = [], gate }: AffectedRecord,
): ParentLocks {
  const {
    unit: { schema },
  } = write;
  const edges = edgesOf(write);
  const written = edgesFrom(edges, object, changed).flatMap((edge) => {
    const queries: string[] = [];
    if (id !== null)
      queries.push(
        `SELECT x.${identifier(edge.referenceField)} FROM ${table(schema, edge.child)} x WHERE x."id" = ${id}`,
      );
    for (const [{ field }, id] of moves ?? [])
      if (field.apiName === edge.referenceField) queries.push(`SELECT ${id} FROM refs`);
    return queries.length > 0 ? [{ edge, ids: queries.join(' UNION ALL ') }] : [];
  });
  const later = pending.flatMap((item) =>
    edges
      .filter((edge) => edge.child === item.objectApiName && edge.referenceField === item.field)
      .map((edge) => ({ edge, ids: `SELECT ${item.id}` })),
  );
  const ofRelated = related.flatMap((item) =>
    edgesFrom(edges, item.object, null).map((edge) => ({ edge, ids: item.named(edge.referenceField) })),
  );
  const first = [...written, ...later, ...ofRelated];
  if (first.length === 0) return { ctes: [], after: '' };
  const locks = parentLocks(
    edges,
    first,
    (edge, below) =>
      `SELECT x.${identifier(edge.referenceField)} FROM ${table(schema, edge.child)} x WHERE x."id" IN (${below})`,
  );
  // Of one object all are locked at once: records that are parents of each other have no other order.
  const together = (lock: ParentLock): readonly string[] =>
    lock.object === object && id !== null ? [...lock.ids, `SELECT ${id}`] : lock.ids;
  const after = (index: number): string => (index < 0 ? gate : ` AND (SELECT count(*) FROM parents${index}) >= 0`);
  return {
    ctes: locks.map(
      (lock, index) =>
        `parents${index} AS MATERIALIZED (SELECT parent."id" FROM ${table(schema, lock.object)} parent
          WHERE parent."id" IN (${together(lock).join(' UNION ALL ')})${after(index - 1)}
          ORDER BY parent."id" FOR NO KEY UPDATE)`,
    ),
    after: after(locks.length - 1),
  };
}
