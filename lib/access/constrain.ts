/**
 * "Which ones?": joins the caller's record access to a plan, by AND, on the queried object and on every related one.
 * The only maker of a ConstrainedPlan, and nothing else compiles. Source: docs/reference/access.md.
 */
import type { ConstrainedPlan, Plan, PlanNode } from '../query/types.ts';
import type { Access } from './types.ts';

const NOTHING: PlanNode = { kind: 'false' };

export function constrain(plan: Plan, access: Access): ConstrainedPlan {
  return {
    ...plan,
    filter: plan.filter && constrainNode(plan.filter, access),
    sharing: sharingOf(plan.object.apiName, access),
  } as ConstrainedPlan;
}

/** Which records of an object the user may read: null for all of them. */
function sharingOf(objectApiName: string, access: Access): PlanNode | null {
  return access.objects[objectApiName]?.permission.read ? null : NOTHING;
}

function constrainNode(node: PlanNode, access: Access): PlanNode {
  switch (node.kind) {
    case 'and':
    case 'or':
      return { kind: node.kind, nodes: node.nodes.map((inner) => constrainNode(inner, access)) };
    case 'related':
      return {
        ...node,
        node: node.node && constrainNode(node.node, access),
        sharing: sharingOf(node.object.apiName, access),
      };
    default:
      return node;
  }
}
