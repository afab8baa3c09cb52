/** What holds for every kind whose components belong to an object. */
import { type CheckContext, type Component, componentsByObject } from './kind.ts';

/**
 * The components of a type on each object: no two names that differ in upper and lower case only, and `max` of them at
 * most. `plural` is what people call them.
 */
export function checkPerObject(context: CheckContext, type: string, plural: string, max: number): void {
  for (const list of componentsByObject(context.after, type).values()) checkNames(context, list);
  checkNumber(context, type, plural, max);
}

function checkNames(context: CheckContext, list: readonly Component[]): void {
  const named = new Map<string, Component>();
  for (const component of list) {
    const name = String(component.body['apiName']).toLowerCase();
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
}

/** At most `max` components of a type on each object. */
export function checkNumber(context: CheckContext, type: string, plural: string, max: number): void {
  for (const list of componentsByObject(context.after, type).values())
    if (list.length > max)
      context.problem('LIMIT_EXCEEDED', list.at(-1)!, '', `An object has ${max} ${plural} at most.`, {
        details: { max },
      });
}
