/**
 * How rollup fields hang together: which objects feed which, and in which order their records are locked, so that
 * writers on any level never wait for each other in a cycle. Pure. Source: docs/decisions/rollups-by-triggers.md.
 */
import { memoize, memoizeByName } from '../values/memoize.ts';
import { required } from '../values/required.ts';
import type { FieldMeta, ObjectMeta } from './snapshot.ts';

/** The rollup fields of one parent over the children that one reference field ties to it. */
export interface RollupEdge {
  readonly child: string;
  readonly referenceField: string;
  readonly parent: string;
  readonly fields: readonly FieldMeta[];
  /** Stored fields of the child whose change can change one of them; the reference field is among them. */
  readonly reads: ReadonlySet<string>;
  /** Children go with their parent when it is deleted. */
  readonly cascades: boolean;
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
  const ties = [...byTie].sort(([a], [b]) => (a < b ? -1 : 1));
  return ties.flatMap(([, found]) => {
    const [first] = found;
    if (!first) return [];
    const { parent, rollup } = first;
    const edge: RollupEdge = {
      child: rollup.childObject,
      referenceField: rollup.referenceField,
      parent: parent.apiName,
      fields: found.map(({ field }) => field),
      reads: new Set(found.flatMap((item) => item.rollup.reads)),
      cascades: rollup.cascades,
    };
    return [edge];
  });
}

/** Fields of a record that change together with each of its rollup fields. */
export const CHANGED_ALONG: readonly string[] = ['recordVersion', 'updatedAt', 'updatedById'];

/** A change of the fields of `edge` on its parent passes along `next`, too. */
const feeds = (edge: RollupEdge, next: RollupEdge): boolean =>
  next.child === edge.parent &&
  (edge.fields.some((field) => next.reads.has(field.apiName)) || CHANGED_ALONG.some((name) => next.reads.has(name)));

/** The edges along which a change passes on after `edge`, for each of a configuration. */
const passedOn = memoize((edges: readonly RollupEdge[]): ReadonlyMap<RollupEdge, readonly RollupEdge[]> => {
  const byChild = Map.groupBy(edges, (edge) => edge.child);
  return new Map(edges.map((edge) => [edge, (byChild.get(edge.parent) ?? []).filter((next) => feeds(edge, next))]));
});

/**
 * How many edges a change passes along one after the other until it has passed an edge, for each of a configuration;
 * infinite for those of a cycle and behind one.
 */
export const levelsOf = memoize((edges: readonly RollupEdge[]): ReadonlyMap<RollupEdge, number> => {
  const next = passedOn(edges);
  const feeding = new Map(edges.map((edge) => [edge, 0]));
  for (const fed of next.values()) for (const edge of fed) feeding.set(edge, required(feeding, edge) + 1);
  const levels = new Map(edges.map((edge) => [edge, Number.POSITIVE_INFINITY]));
  const ready = edges.filter((edge) => feeding.get(edge) === 0);
  for (const edge of ready) levels.set(edge, 1);
  const longest = new Map<RollupEdge, number>();
  for (let edge = ready.pop(); edge; edge = ready.pop())
    for (const above of required(next, edge)) {
      const below = Math.max(longest.get(above) ?? 0, required(levels, edge));
      const left = required(feeding, above) - 1;
      longest.set(above, below);
      feeding.set(above, left);
      if (left !== 0) continue;
      levels.set(above, below + 1);
      ready.push(above);
    }
  return levels;
});

/**
 * The number of ways that a change can take from an edge upwards, for each of a configuration without cycles: so many
 * times the records on the way are looked up before a child is written.
 */
export function waysOf(edges: readonly RollupEdge[]): ReadonlyMap<RollupEdge, number> {
  const next = passedOn(edges);
  const ways = new Map<RollupEdge, number>();
  const count = (edge: RollupEdge): number => {
    let found = ways.get(edge);
    if (found === undefined) {
      found = 1;
      for (const above of required(next, edge)) found += count(above);
      ways.set(edge, found);
    }
    return found;
  };
  for (const edge of edges) count(edge);
  return ways;
}

/** Records of one object that are locked in one statement, in the order of their ids. */
export interface ParentLock {
  readonly object: string;
  /** SQL queries of the ids; the records are those that any of them names. */
  readonly ids: readonly string[];
}

/**
 * The records that a change passes on its way along `first`, in the one order in which every writer locks them: the object
 * with the most levels below first; of equals, the one whose children go with it, for a deletion goes down from there.
 * `ids` is SQL of the ids of the first parents, `idsAbove` makes SQL of the ids one level up.
 */
export function parentLocks(
  edges: readonly RollupEdge[],
  first: readonly { readonly edge: RollupEdge; readonly ids: string }[],
  idsAbove: (edge: RollupEdge, ids: string) => string,
): readonly ParentLock[] {
  const found = new Map<string, Set<string>>();
  const visit = (edge: RollupEdge, ids: string): void => {
    found.set(edge.parent, (found.get(edge.parent) ?? new Set()).add(ids));
    for (const next of required(passedOn(edges), edge)) visit(next, idsAbove(next, ids));
  };
  for (const { edge, ids } of first) visit(edge, ids);
  return [...found]
    .map(([object, ids]) => ({ object, ids: [...ids], place: placeOf(edges, object) }))
    .sort((a, b) => a.place - b.place || (a.object < b.object ? -1 : 1))
    .map(({ object, ids }) => ({ object, ids }));
}

/** A parent's position in that order. */
const placeOf = memoizeByName((edges: readonly RollupEdge[], parent): number => {
  const own = edges.filter((edge) => edge.parent === parent);
  const levels = Math.max(...own.map((edge) => required(levelsOf(edges), edge)));
  return -levels - (own.some((edge) => edge.cascades) ? 0.5 : 0);
});

/** Value of a rollup without children: 0 for count and sum, else null. */
export const emptyRollup = ({ rollup }: FieldMeta): 'NULL' | '0' =>
  rollup?.function === 'count' || rollup?.function === 'sum' ? '0' : 'NULL';
