/**
 * Adds the record access of the caller to a plan, by AND, on the queried object and on every other one that is read.
 * The only module that creates a ConstrainedPlan, and only a ConstrainedPlan can be compiled. Source:
 * docs/reference/access.md.
 */
import type { Predicate } from '../access/predicate.ts';
import { reach } from '../access/sharing.ts';
import type { Access } from '../access/types.ts';
import type { ObjectMeta } from '../schema/snapshot.ts';
import type { AggregatePlan, Constrained, ConstrainedPlan, Plan } from './types.ts';

/** The plan of a list or of one record. */
export function constrain(plan: Plan, access: Access): ConstrainedPlan {
  const expand = plan.expand.map((expansion) => reached(expansion, access));
  const sort = plan.sort.map((key) => ({ ...key, through: key.through && reached(key.through, access) }));
  return reached({ ...plan, expand, sort, filter: plan.filter && constrainNode(plan.filter, access) }, access);
}

/** The plan of groups. */
export const constrainGroups = (plan: AggregatePlan, access: Access): Constrained<AggregatePlan> =>
  reached({ ...plan, filter: plan.filter && constrainNode(plan.filter, access) }, access);

const reached = <P extends { readonly object: ObjectMeta }>(part: P, access: Access): Constrained<P> =>
  ({ ...part, sharing: reach(access, part.object.apiName, 'read') }) as Constrained<P>;

function constrainNode(node: Predicate, access: Access): Predicate {
  switch (node.kind) {
    case 'and':
    case 'or':
      return { kind: node.kind, nodes: node.nodes.map((inner) => constrainNode(inner, access)) };
    case 'related':
      return {
        ...node,
        node: node.node && constrainNode(node.node, access),
        sharing: reach(access, node.object.apiName, 'read'),
      };
    case 'referenced':
      return {
        ...node,
        node: constrainNode(node.node, access),
        sharing: reach(access, node.object.apiName, 'read'),
      };
    default:
      return node;
  }
}
