/** Calls of a gateway that has just started. */
import { setTimeout } from 'node:timers/promises';

/** A gateway that has just started may know this process before this process knows it. */
const KNOWN_WITHIN_MS = 2_000;
const LOOK_EVERY_MS = 50;

/** Calls again while the node that is called is not known: nothing has been sent to it then. */
export async function onceKnown<Result>(run: () => Promise<Result>): Promise<Result> {
  const end = performance.now() + KNOWN_WITHIN_MS;
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if (!isUnknown(error) || performance.now() > end) throw error;
      await setTimeout(LOOK_EVERY_MS);
    }
  }
}

const isUnknown = (error: unknown): boolean => error instanceof Error && error.name === 'ServiceNotFoundError';
