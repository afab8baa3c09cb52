/**
 * Password hashes are the most expensive thing that a stranger can ask for: 19 MiB and some 30 ms of a processor each,
 * in the thread pool that file system and compression need as well. So only a few run at a time, and what waits is
 * bounded. Networks take turns, and people at a known place come before all others: a flood of guesses fills its own
 * share alone.
 */
import { availableParallelism } from 'node:os';
import { FairQueue, type Holder } from '../../mixins/fair-queue.ts';

/** The work of the platform itself, such as the passwords of new users. */
export const PLATFORM: Holder = { key: 'platform', preferred: true };

/** A network; `known`: the user has signed in from there, or in this browser, before. */
export const placeOf = (network: string, known: boolean): Holder => ({
  key: `${known ? 'known' : 'unknown'} ${network}`,
  preferred: known,
});

/** Nothing more can wait. */
export class QueueFull extends Error {
  override readonly name = 'QueueFull';
}

export const hashQueue = (): FairQueue =>
  new FairQueue(
    {
      // One processor stays for everything else, and of the four threads of the pool as well.
      places: Math.max(1, Math.min(3, availableParallelism() - 1)),
      waitingPerHolder: 40,
      waiting: 120,
    },
    () => new QueueFull('Too many passwords wait to be checked.'),
  );
