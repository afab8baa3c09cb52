/**
 * How far records may be from the one that decides who sees them: each parent on the way is a condition in every
 * statement on the object. Source: docs/reference/access.md#sharing.
 */
import { PARENTS_MAX } from '../../../lib/access/sharing.ts';
import { fieldTypeOf } from './field-attributes.ts';
import { type Body, type CheckContext, type Component, componentKey } from './kind.ts';

/** Parents that are asked about for one record, over all the ways that two masters each can make. */
const PARENT_WAYS_MAX = 14;

/** Objects that a field refers to: none where it does not say to what, which is a problem of its own. */
export const targetsOf = ({ body }: { readonly body: Body }): readonly string[] =>
  (body['referenceTo'] as readonly string[] | undefined) ?? [];

interface Distance {
  /** Objects in the longest chain, this one among them. */
  readonly objects: number;
  readonly ways: number;
}

export function checkParents(context: CheckContext): void {
  const known = new Map<string, Distance>();
  for (const component of context.after.values()) {
    if (!followsParent(component)) continue;
    const { objects, ways } = distanceOf(component.fullName, context, known);
    const exceeded = (message: string, max: number): void =>
      context.problem('LIMIT_EXCEEDED', component, '/sharingDefault', message, { details: { max } });
    if (objects > PARENTS_MAX)
      exceeded(`Records follow parents over ${PARENTS_MAX} objects at most, and here it is ${objects}.`, PARENTS_MAX);
    else if (ways > PARENT_WAYS_MAX)
      exceeded(`A record follows ${PARENT_WAYS_MAX} parents at most, and here it is ${ways}.`, PARENT_WAYS_MAX);
  }
}

const followsParent = (component: Component | undefined): boolean =>
  component?.type === 'CustomObject' && component.body['sharingDefault'] === 'controlledByParent';

function distanceOf(object: string, context: CheckContext, known: Map<string, Distance>): Distance {
  const found = known.get(object);
  if (found) return found;
  // Who comes back to an object has found a circle, which is another problem.
  known.set(object, { objects: 1, ways: 0 });
  if (!followsParent(context.after.get(componentKey('CustomObject', object)))) return known.get(object)!;
  let [objects, ways] = [1, 0];
  for (const field of context.fieldsOf(object).values()) {
    if (fieldTypeOf(field).relation !== 'master') continue;
    for (const parent of targetsOf(field)) {
      const above = distanceOf(parent, context, known);
      objects = Math.max(objects, above.objects + 1);
      ways += above.ways + 1;
    }
  }
  known.set(object, { objects, ways });
  return { objects, ways };
}
