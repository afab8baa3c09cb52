/** What holds for every kind whose components belong to an object. */
import { type CheckContext, componentsByObject } from './kind.ts';

/** At most `max` components of a type on each object. `plural` is what people call them. */
export function checkPerObject(context: CheckContext, type: string, plural: string, max: number): void {
  for (const list of componentsByObject(context.after, type).values())
    if (list.length > max)
      context.problem('LIMIT_EXCEEDED', list.at(-1)!, '', `An object has ${max} ${plural} at most.`, {
        details: { max },
      });
}
