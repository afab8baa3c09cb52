/** Time limits of an operation's calls: those of its row, and the defaults. */
import { LIMITS } from '../lib/limits.ts';
import type { Operation } from '../lib/operation.ts';

export interface TimeLimits {
  /** From the arrival of a request to its answer. */
  readonly answerMs: number;
  /** Wait for one call of the service. */
  readonly callMs: number;
  /** The same on the bus, where an answer that comes late still says what it has cost; undefined: that of every call. */
  readonly busMs: number | undefined;
  /** Time in which the caller takes nothing of the answer, or sends nothing of a streamed body. */
  readonly idleMs: number;
  /** From its beginning to the end of a stream of events. */
  readonly streamMs: number;
}

/** Of requests that are no operation, and of rows that set none. */
export const DEFAULT_TIME_LIMITS: TimeLimits = {
  answerMs: LIMITS.request_timeout_ms,
  callMs: LIMITS.request_timeout_ms,
  busMs: undefined,
  idleMs: LIMITS.answer_stall_ms,
  streamMs: Number.POSITIVE_INFINITY,
};

export function timeLimitsOf({ timeLimitMs, idleMs, requestBody, response }: Operation): TimeLimits {
  if (timeLimitMs === undefined && idleMs === undefined) return DEFAULT_TIME_LIMITS;
  const limits = { ...DEFAULT_TIME_LIMITS, ...(idleMs === undefined ? {} : { idleMs }) };
  if (timeLimitMs === undefined) return limits;
  if (response.kind === 'events') return { ...limits, streamMs: timeLimitMs };
  // The bytes take the time, and no call of the service waits for them.
  if (requestBody?.kind === 'stream') return { ...limits, answerMs: timeLimitMs };
  const busMs = timeLimitMs + LIMITS.bus_timeout_ms - LIMITS.request_timeout_ms;
  return { ...limits, answerMs: timeLimitMs, callMs: timeLimitMs, busMs };
}
