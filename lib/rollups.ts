/**
 * How rollup fields hang together: which objects feed which, and in which order their records are locked, so that
 * writers on any level never wait for each other in a circle. Pure. Source: docs/decisions/rollups-by-triggers.md.
 */
import type { FieldMeta, ObjectMeta } from './snapshot/types.ts';

/** The rollup fields of one parent over the children that one reference field ties to it. */
export interface RollupEdge {
  readonly child: string;
  readonly referenceField: string;
  readonly parent: string;
  readonly fields: readonly FieldMeta[];
  /** Stored fields of the child whose change can change one of them; the reference field is among them. */
  readonly reads: ReadonlySet<string>;
}

/** All edges, by child and reference field. */
export function rollupEdges(
  objects: Readonly<Record<string, Pick<ObjectMeta, 'apiName' | 'fields'>>>,
): readonly RollupEdge[] {
  const byTie = Map.groupBy(
    Object.values(objects).flatMap((parent) =>
      Object.values(parent.fields).flatMap((field) => (field.rollup ? [{ parent, field, rollup: field.rollup }] : [])),
    ),
    ({ parent, rollup }) => `${rollup.childObject}.${rollup.referenceField}.${parent.apiName}`,
  );
  return [...byTie.keys()].sort().map((tie) => {
    const found = byTie.get(tie)!;
    const [{ parent, rollup }] = found as [(typeof found)[0]];
    return {
      child: rollup.childObject,
      referenceField: rollup.referenceField,
      parent: parent.apiName,
      fields: found.map(({ field }) => field),
      reads: new Set(found.flatMap((item) => item.rollup.reads)),
    };
  });
}

/** What changes in a record along with each of its rollup fields. */
export const CHANGED_ALONG: readonly string[] = ['recordVersion', 'updatedAt', 'updatedById'];

/** A change of the fields of `edge` on its parent passes along `next`, too. */
const feeds = (edge: RollupEdge, next: RollupEdge): boolean =>
  next.child === edge.parent &&
  (edge.fields.some((field) => next.reads.has(field.apiName)) || CHANGED_ALONG.some((name) => next.reads.has(name)));

/** More levels than any deployment lets through. */
const LEVELS_BOUND = 10;

/** How many edges a change along `edge` passes after it; infinite when they form a circle. */
export function levelsAbove(
  edge: RollupEdge,
  edges: readonly RollupEdge[],
  path: readonly RollupEdge[] = [edge],
): number {
  let most = 0;
  for (const next of edges) {
    if (!feeds(edge, next)) continue;
    if (path.includes(next)) return Number.POSITIVE_INFINITY;
    most = Math.max(most, 1 + (path.length < LEVELS_BOUND ? levelsAbove(next, edges, [...path, next]) : 0));
  }
  return most;
}

/** Records of one object that are locked in one statement, in the order of their ids. */
export interface ParentLock {
  readonly object: string;
  /** SQL queries of the ids; the records are those that any of them names. */
  readonly ids: readonly string[];
}

/**
 * The records that a change passes on its way along `first`, topmost object first. `ids` is SQL of the ids of the first
 * parents; `column` gives the SQL of a field of a table.
 */
export function parentLocks(
  edges: readonly RollupEdge[],
  first: readonly { readonly edge: RollupEdge; readonly ids: string }[],
  idsAbove: (edge: RollupEdge, ids: string) => string,
): readonly ParentLock[] {
  const found = new Map<string, { rank: number; ids: Set<string> }>();
  const visit = (edge: RollupEdge, ids: string): void => {
    const known = found.get(edge.parent) ?? { rank: 0, ids: new Set() };
    known.ids.add(ids);
    known.rank = Math.max(known.rank, levelsAbove(edge, edges));
    found.set(edge.parent, known);
    for (const next of edges) if (feeds(edge, next)) visit(next, idsAbove(next, ids));
  };
  for (const { edge, ids } of first) visit(edge, ids);
  return [...found]
    .sort(([a, x], [b, y]) => x.rank - y.rank || (a < b ? -1 : 1))
    .map(([object, { ids }]) => ({ object, ids: [...ids] }));
}

/** What a rollup over no child is: of nothing, a count and a sum are 0. */
export const emptyRollup = ({ rollup }: FieldMeta): 'NULL' | '0' =>
  rollup?.function === 'count' || rollup?.function === 'sum' ? '0' : 'NULL';
