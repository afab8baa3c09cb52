/** Goes through the parts of a checked expression. */
import type { Node } from './types.ts';

/** Every node of the tree, parents first. */
export function* nodesOf(root: Node): Generator<Node, undefined> {
  const left = [root];
  for (let node = left.pop(); node; node = left.pop()) {
    yield node;
    left.push(...partsOf(node).toReversed());
  }
}

function partsOf(node: Node): readonly Node[] {
  switch (node.op) {
    case 'part':
    case 'not':
    case 'isBlank':
      return [node.value];
    case 'list':
    case 'coalesce':
      return node.items;
    case 'and':
    case 'or':
    case 'equal':
    case 'unequal':
    case 'less':
    case 'lessOrEqual':
    case 'greater':
    case 'greaterOrEqual':
      return [node.left, node.right];
    case 'if':
      return [node.condition, node.yes, node.no];
    case 'in':
      return [node.value, node.list];
    case 'each':
      return [node.list, node.condition];
    case 'call':
      return node.args;
    default:
      return [];
  }
}
