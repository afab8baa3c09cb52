/** When a delivery that failed is tried again. */

/** Seconds to wait after the first failed attempt, the second, … */
const WAITS = [5, 30, 120, 600, 3_600, 10_800, 28_800, 86_400, 86_400];
const SPREAD = 0.2;
/** A receiver that asks for more is tried no later than that. */
const RETRY_AFTER_MAX_SECONDS = 86_400;
const SUSPEND_AFTER_MS = 3 * 24 * 3_600_000;

/** Seconds until the next attempt after so many; null: there is none. */
export function secondsUntilRetry(
  attempts: number,
  retryAfter: string | null,
  now: number,
  random = Math.random(),
): number | null {
  const wait = WAITS[attempts - 1];
  if (wait === undefined) return null;
  const asked = Math.min(secondsOf(retryAfter, now), RETRY_AFTER_MAX_SECONDS);
  return Math.max(asked, wait * (1 - SPREAD + 2 * SPREAD * random));
}

/** Retry-After: seconds, or a date. */
function secondsOf(retryAfter: string | null, now: number): number {
  if (retryAfter === null) return 0;
  const seconds = /^\d+$/.test(retryAfter) ? Number(retryAfter) : (Date.parse(retryAfter) - now) / 1_000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : 0;
}

/** Three days of nothing but failures. */
export const isHopeless = (failingSince: number | null, now: number): boolean =>
  failingSince !== null && now - failingSince >= SUSPEND_AFTER_MS;
