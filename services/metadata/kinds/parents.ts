/**
 * How far records may be from the one that decides who sees them: each parent on the way is a condition in every
 * statement on the object. Source: docs/reference/access.md#sharing.
 */
import { PARENTS_MAX } from '../../../lib/access/sharing.ts';
import { isMasterDetail } from '../../../lib/schema/field-types/registry.ts';
import { CUSTOM_OBJECT, type ObjectComponent } from './bodies/custom-object.ts';
import { componentsOf, findComponent } from './component.ts';
import type { CheckContext } from './kind.ts';

/** Parents that are asked about for one record, over all the ways that two masters each can make. */
const PARENT_WAYS_MAX = 14;

interface Distance {
  /** Objects in the longest chain, this one among them. */
  readonly objects: number;
  readonly ways: number;
}

export function checkParents(context: CheckContext): void {
  const known = new Map<string, Distance>();
  for (const component of componentsOf(context.after, CUSTOM_OBJECT)) {
    if (!followsParent(component)) continue;
    const { objects, ways } = distanceOf(component.fullName, context, known);
    const exceeded = (message: string, max: number): void =>
      context.problem('LIMIT_EXCEEDED', component, '/sharingDefault', message, { details: { max } });
    if (objects > PARENTS_MAX)
      exceeded(`Records may follow parents over at most ${PARENTS_MAX} objects, not ${objects}.`, PARENTS_MAX);
    else if (ways > PARENT_WAYS_MAX)
      exceeded(`A record may follow at most ${PARENT_WAYS_MAX} parents, not ${ways}.`, PARENT_WAYS_MAX);
  }
}

const followsParent = (component: ObjectComponent | undefined): boolean =>
  component?.body.sharingDefault === 'controlledByParent';

function distanceOf(object: string, context: CheckContext, known: Map<string, Distance>): Distance {
  const found = known.get(object);
  if (found) return found;
  // Reaching an object again means a cycle, which is another problem.
  const alone: Distance = { objects: 1, ways: 0 };
  known.set(object, alone);
  if (!followsParent(findComponent(context.after, CUSTOM_OBJECT, object))) return alone;
  let [objects, ways] = [1, 0];
  for (const field of context.fieldsOf(object).values()) {
    if (!isMasterDetail(field.body)) continue;
    for (const parent of field.body.referenceTo ?? []) {
      const above = distanceOf(parent, context, known);
      objects = Math.max(objects, above.objects + 1);
      ways += above.ways + 1;
    }
  }
  known.set(object, { objects, ways });
  return { objects, ways };
}
