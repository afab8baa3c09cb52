import { setImmediate as nextTurn } from 'node:timers/promises';
import { wallAt } from '../recurrence/times.ts';

/** So many milliseconds of work, and other requests have their turn. */
const TURN_MS = 20;

/** The items one by one, with turns of the event loop for other requests in between. */
export async function* inTurns<T>(items: Iterable<T>): AsyncGenerator<T> {
  let began = performance.now();
  for (const item of items) {
    yield item;
    if (performance.now() - began > TURN_MS) {
      await nextTurn();
      began = performance.now();
    }
  }
}

/** Looks at the time zones of the instances in turns: the first look at a zone takes a while, later ones do not. */
export async function meetZones(
  overrides: readonly {
    readonly patch: { readonly startTimezone?: string | null; readonly endTimezone?: string | null };
  }[],
): Promise<void> {
  const zones = new Set(overrides.flatMap(({ patch }) => [patch.startTimezone, patch.endTimezone]));
  for await (const zone of inTurns(zones)) if (zone) wallAt(0, zone);
}
