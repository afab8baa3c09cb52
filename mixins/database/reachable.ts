/**
 * A process that starts before its database waits for it: as long as that takes, and it says so. What waiting does not
 * mend, such as a wrong password, is left to the first use, which fails with a sentence about it. Source:
 * docs/reference/operations-cluster.md#start-and-stop.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { messageOf } from '../../lib/errors/thrown.ts';
import { membersOf } from '../../lib/json/objects.ts';
import { type FailureKind, failureOf } from './failures.ts';
import { PageClient } from './page-client.ts';

/** Between attempts: from the first to the later ones. */
const WAIT_MS = 100;
const WAIT_MAX_MS = 2_000;
/** How often the log says what is waited for. */
const TELL_EVERY_MS = 30_000;
const CONNECT_MS = 5_000;

const PASSING: ReadonlySet<FailureKind> = new Set(['unreachable', 'stopping', 'tooManyConnections']);

/** Waiting mends it. An address that this process cannot listen on is not the database's. */
function passes(error: unknown): boolean {
  const failure = failureOf(error);
  return failure !== null && PASSING.has(failure.kind) && membersOf(error)['syscall'] !== 'listen';
}

/**
 * A start that loses its database on the way begins anew, which waits for the database first: every step of a start is
 * safe to repeat.
 */
export async function startingAgain<T>(
  start: () => Promise<T>,
  { stopped, warn }: Pick<WaitOptions, 'stopped' | 'warn'>,
): Promise<T> {
  for (let attempt = 0; ; attempt++)
    try {
      return await start();
    } catch (error) {
      const lost = [error, membersOf(error)['cause']].find(passes);
      if (lost === undefined || stopped?.aborted) throw error;
      warn(`The start lost its database (${messageOf(lost)}) and begins again.`);
      await betweenAttempts(attempt, stopped);
    }
}

interface WaitOptions {
  /** Ends the wait, which throws then. */
  readonly stopped?: AbortSignal | undefined;
  readonly warn: (message: string) => void;
  /** Told what is waited for, and null when it is there. */
  readonly waiting?: (reason: string | null) => void;
}

/** `variable`: where the address stands, for people. */
export async function untilReachable(
  { variable, url }: { variable: string; url: string },
  { stopped, warn, waiting = () => {} }: WaitOptions,
): Promise<void> {
  let toldAt = Number.NEGATIVE_INFINITY;
  for (let attempt = 0; ; attempt++) {
    stopped?.throwIfAborted();
    const obstacle = await obstacleOf(url);
    if (obstacle === null) {
      if (attempt > 0) warn(`The database of ${variable} is there.`);
      return waiting(null);
    }
    const reason = `the database of ${variable} (${obstacle})`;
    waiting(reason);
    if (performance.now() - toldAt > TELL_EVERY_MS) {
      toldAt = performance.now();
      warn(`Waiting for ${reason}.`);
    }
    await betweenAttempts(attempt, stopped);
  }
}

function betweenAttempts(attempt: number, stopped: AbortSignal | undefined): Promise<void> {
  const ms = Math.min(WAIT_MS * 2 ** attempt, WAIT_MAX_MS) * (0.75 + Math.random() / 2);
  return pause(ms, undefined, stopped ? { signal: stopped } : {});
}

/** The temporary obstacle; null: none. */
async function obstacleOf(url: string): Promise<string | null> {
  const client = new PageClient({ connectionString: url, connectionTimeoutMillis: CONNECT_MS });
  try {
    await client.connect();
    return client.isReadOnly ? 'it is read-only' : null;
  } catch (error) {
    return passes(error) ? reasonOf(error) : null;
  } finally {
    await client.end().catch(() => {});
  }
}

/** Of an address with several hosts there is an error each, and no message. */
const reasonOf = (error: unknown): string =>
  error instanceof AggregateError ? error.errors.map(String).join(', ') : messageOf(error);
