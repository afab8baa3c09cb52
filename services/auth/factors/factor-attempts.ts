/**
 * Attempts with passkeys, codes of an app and recovery codes: bounded by user and by network address. Where the user
 * has signed in before, in this browser or from this network, failures are counted apart from those of strangers, as
 * they are for passwords: the owner's right code passes regardless of guesses elsewhere by one who knows the password.
 */
import { type AttemptCounter, networkCounter, USER_ATTEMPTS } from '../attempt-limits.ts';
import type { UserKey } from '../store/factors.ts';
import { browserOrigin, networkOrigin } from '../store/known-origins.ts';
import type { AuthStore } from '../store/store.ts';

type Judged = { outcome: 'accepted' } | { outcome: 'refused' } | { outcome: 'wait'; seconds: number };

interface FactorAttempt {
  /** null before one is known. */
  user: UserKey | null;
  address: string;
  /** The value of the browser's cookie from an earlier sign-in; null without one. */
  browser: string | null;
}

/** Counts an attempt before `check` judges it; a right one is taken back. */
export async function attemptFactor(
  store: AuthStore,
  attempt: FactorAttempt,
  check: () => Promise<boolean>,
): Promise<Judged> {
  const counters = await countersFor(store, attempt);
  const seconds = await store.attempts.count(counters);
  if (seconds > 0) return { outcome: 'wait', seconds };
  if (!(await check())) return { outcome: 'refused' };
  await store.attempts.takeBack(counters);
  return { outcome: 'accepted' };
}

/** Counters of an attempt; in a known browser not even that of a shared address. */
async function countersFor(
  store: AuthStore,
  { user, address, browser }: FactorAttempt,
): Promise<readonly AttemptCounter[]> {
  const ofNetwork = networkCounter(address);
  if (user === null) return [ofNetwork];
  const ofBrowser = browser === null ? null : browserOrigin(browser);
  const origins = [...(ofBrowser ? [ofBrowser] : []), networkOrigin(address)];
  const [known] = await store.knownOrigins.known(user.tenantId, user.userId, origins);
  const place = known ? `${known.toString('base64url')} ` : '';
  const ofUser = { key: `factor ${place}${user.userId}`, limit: USER_ATTEMPTS, shared: false };
  return known && known === ofBrowser ? [ofUser] : [ofNetwork, ofUser];
}
