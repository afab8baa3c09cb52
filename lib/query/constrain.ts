/**
 * Adds the record access of the caller to a plan, by AND, on the queried object and on every related one. The only
 * module that creates a ConstrainedPlan, and only a ConstrainedPlan can be compiled. Source: docs/reference/access.md.
 */
import type { Predicate } from '../access/predicate.ts';
import { reach } from '../access/sharing.ts';
import type { Access } from '../access/types.ts';
import type { AggregatePlan, Constrained, Plan } from './types.ts';

export function constrain<P extends Plan | AggregatePlan>(plan: P, access: Access): Constrained<P> {
  return {
    ...plan,
    filter: plan.filter && constrainNode(plan.filter, access),
    sharing: reach(access, plan.object.apiName, 'read'),
  } as unknown as Constrained<P>;
}

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
    default:
      return node;
  }
}
