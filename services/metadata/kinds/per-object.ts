/** What holds for every kind whose components belong to an object. */
import type { CheckContext, Component } from './kind.ts';

/**
 * The components of a type on each object: no two names that differ in upper and lower case only, and `max` of them at
 * most. `plural` is what people call them.
 */
export function checkPerObject(context: CheckContext, type: string, plural: string, max: number): void {
  const objects = new Map<string, Map<string, Component>>();
  for (const component of context.after.values()) {
    if (component.type !== type) continue;
    const object = String(component.body['object']);
    const name = String(component.body['apiName']).toLowerCase();
    let named = objects.get(object);
    if (!named) objects.set(object, (named = new Map()));
    const twin = named.get(name);
    if (twin)
      context.problem(
        'NAME_CONFLICT',
        component,
        '/apiName',
        `Differs from ${twin.fullName} in upper and lower case only.`,
      );
    named.set(name, component);
  }
  for (const named of objects.values())
    if (named.size > max)
      context.problem('LIMIT_EXCEEDED', [...named.values()].at(-1)!, '', `An object has ${max} ${plural} at most.`, {
        details: { max },
      });
}
