import { setImmediate as nextTurn } from 'node:timers/promises';

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
