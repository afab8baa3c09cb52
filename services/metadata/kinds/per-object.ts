/** Common to all kinds whose components belong to an object. */
import { type ComponentType, componentsByObject } from './component.ts';
import type { CheckContext } from './kind.ts';

/** At most `max` components of a type on each object. `plural` is what people call them. */
export function checkPerObject(context: CheckContext, type: ComponentType, plural: string, max: number): void {
  for (const list of componentsByObject(context.after, type).values()) {
    const last = list.at(-1);
    if (last && list.length > max)
      context.problem('LIMIT_EXCEEDED', last, '', `An object may have at most ${max} ${plural}.`, { details: { max } });
  }
}
