/**
 * How often and how long a request is sent: the table of docs/reference/errors.md#when-to-send-again. A read is repeated
 * always, a change with the same idempotency key and the same body, which the platform carries out once. The client and
 * the command line share it.
 */

/** An attempt that failed. */
export interface Failed {
  /** HTTP status; null: no answer came. */
  readonly status: number | null;
  /** Code of the Error body. */
  readonly code?: string | undefined;
  readonly retryable?: boolean | undefined;
  readonly retryAfterSeconds?: number | undefined;
  /** No answer came, and nothing of the request can have arrived. */
  readonly neverSent?: boolean;
  /** Another attempt would come to the same. */
  readonly final?: boolean;
}

/** True when a failed attempt may have been executed. */
export interface Doubt {
  left: boolean;
}

export interface Attempts<Reply> {
  readonly mutation: boolean;
  /** Sends the request once. */
  attempt(): Promise<Reply>;
  /** Null: it is no failure of the exchange. */
  failed(error: unknown): Failed | null;
  /** Gets another access token; null: the request has none. */
  readonly renew: (() => Promise<unknown>) | null;
  wait(milliseconds: number, error: unknown): Promise<void>;
}

const ATTEMPTS_MAX = 5;
/** Attempts at a host that cannot be reached at all. */
const UNREACHED_ATTEMPTS_MAX = 3;
const BACKOFF_MS = 500;
const RETRY_AFTER_MAX_SECONDS = 60;
const UNAVAILABLE: readonly number[] = [429, 502, 503, 504];
/** Refusals that come before the platform looks at the key: they say nothing of an attempt before. */
const BEFORE_THE_KEY: readonly number[] = [401, 403, 429];

/** Sends until an answer stands. `doubt` is left when an attempt may have been carried out. */
export async function untilAnswered<Reply>(request: Attempts<Reply>, doubt: Doubt = { left: false }): Promise<Reply> {
  let renewed = false;
  for (let attempt = 1; ; attempt++) {
    try {
      return await request.attempt();
    } catch (error) {
      const failed = request.failed(error);
      if (failed && mayHaveWorked(failed)) doubt.left = true;
      if (failed?.code === 'TOKEN_EXPIRED' && request.renew && !renewed) {
        renewed = true;
        await request.renew();
        continue;
      }
      const wait = failed && waitBefore(failed, attempt, request.mutation);
      if (wait === null) throw error;
      await request.wait(wait, error);
    }
  }
}

/** An idempotency key for one intention: something that is meant to happen once. */
export interface Intention {
  readonly key: string;
  /** An earlier call began it and did not learn its outcome. */
  readonly resumed: boolean;
  /** The outcome is known. */
  end(): Promise<void> | void;
  /** The outcome stays unknown: the same request takes up the key. */
  leave?(): void;
}

/** Sends a change under the key of its intention, which ends as soon as the outcome is known. */
export async function underKey<Reply>(
  intention: Intention,
  send: (doubt: Doubt) => Promise<Reply>,
  { failed, undecided }: { failed(error: unknown): Failed | null; undecided(error: unknown): unknown },
): Promise<Reply> {
  const doubt = { left: intention.resumed };
  try {
    const reply = await send(doubt);
    await intention.end();
    return reply;
  } catch (error) {
    if (doubt.left && !settles(failed(error))) {
      intention.leave?.();
      throw undecided(error);
    }
    await intention.end();
    throw error;
  }
}

const mayHaveWorked = ({ status, code, neverSent }: Failed): boolean =>
  status === null ? neverSent !== true : status >= 500 || code === 'IDEMPOTENCY_IN_PROGRESS';

/** True when an answer settles all attempts: an executed one would have been answered again. */
const settles = (failed: Failed | null): boolean =>
  failed !== null && failed.status !== null && !mayHaveWorked(failed) && !BEFORE_THE_KEY.includes(failed.status);

/** Milliseconds until the next attempt; null: this answer stands. */
function waitBefore(failed: Failed, attempt: number, mutation: boolean): number | null {
  const { status, retryable, retryAfterSeconds, neverSent, final } = failed;
  if (final || attempt >= (neverSent ? UNREACHED_ATTEMPTS_MAX : ATTEMPTS_MAX)) return null;
  const again = status === null || retryable || UNAVAILABLE.includes(status) || (mutation && status === 500);
  if (!again) return null;
  const backoff = BACKOFF_MS * 2 ** (attempt - 1) * (0.75 + Math.random() / 2);
  if (retryAfterSeconds === undefined) return backoff;
  return retryAfterSeconds > RETRY_AFTER_MAX_SECONDS ? null : Math.max(backoff, retryAfterSeconds * 1_000);
}
