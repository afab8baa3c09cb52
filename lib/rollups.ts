/**
 * How rollup fields hang together: which objects feed which, and in which order their records are locked, so that
 * writers on any level never wait for each other in a circle. Pure. Source: docs/decisions/rollups-by-triggers.md.
 */
import { rememberedByName } from './remembered.ts';
import type { FieldMeta, ObjectMeta } from './snapshot/types.ts';

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
  return [...byTie.keys()].sort().map((tie) => {
    const found = byTie.get(tie)!;
    const [{ parent, rollup }] = found as [(typeof found)[0]];
    return {
      child: rollup.childObject,
      referenceField: rollup.referenceField,
      parent: parent.apiName,
      fields: found.map(({ field }) => field),
      reads: new Set(found.flatMap((item) => item.rollup.reads)),
      cascades: rollup.cascades,
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

/** How many edges a change passes along one after the other until it has passed `edge`; infinite in a circle. */
export function levelsOf(edge: RollupEdge, edges: readonly RollupEdge[], path: readonly RollupEdge[] = [edge]): number {
  let below = 0;
  for (const before of edges) {
    if (!feeds(before, edge)) continue;
    if (path.includes(before)) return Number.POSITIVE_INFINITY;
    below = Math.max(below, path.length < LEVELS_BOUND ? levelsOf(before, edges, [...path, before]) : 1);
  }
  return below + 1;
}

/** Records of one object that are locked in one statement, in the order of their ids. */
export interface ParentLock {
  readonly object: string;
  /** SQL queries of the ids; the records are those that any of them names. */
  readonly ids: readonly string[];
}

/**
 * The records that a change passes on its way along `first`, in the one order in which everybody locks them: the object
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
    for (const next of edges) if (feeds(edge, next)) visit(next, idsAbove(next, ids));
  };
  for (const { edge, ids } of first) visit(edge, ids);
  return [...found]
    .map(([object, ids]) => ({ object, ids: [...ids], place: placeOf(edges, object) }))
    .sort((a, b) => a.place - b.place || (a.object < b.object ? -1 : 1))
    .map(({ object, ids }) => ({ object, ids }));
}

/** Where a parent stands in that order. */
const placeOf = rememberedByName((edges: readonly RollupEdge[], parent): number => {
  const own = edges.filter((edge) => edge.parent === parent);
  const levels = Math.max(...own.map((edge) => levelsOf(edge, edges)));
  return -levels - (own.some((edge) => edge.cascades) ? 0.5 : 0);
});

/** What a rollup over no child is: of nothing, a count and a sum are 0. */
export const emptyRollup = ({ rollup }: FieldMeta): 'NULL' | '0' =>
  rollup?.function === 'count' || rollup?.function === 'sum' ? '0' : 'NULL';
