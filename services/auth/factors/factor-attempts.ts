/**
 * Attempts with passkeys, codes of an app and recovery codes: bounded by user and by network address. Where the user has
 * signed in before, in this browser or from this network, failures are counted apart from those of strangers, as they are for
 * passwords: the owner's right code passes whatever somebody who knows the password guesses elsewhere.
 */
import { networkOf } from '../../../lib/values/network.ts';
import { NETWORK_ATTEMPTS, USER_ATTEMPTS } from '../attempt-limits.ts';
import type { UserKey } from '../store/factors.ts';
import { browserOrigin, networkOrigin } from '../store/known-origins.ts';
import type { AuthStore } from '../store/store.ts';

export type Judged = { outcome: 'accepted' } | { outcome: 'refused' } | { outcome: 'wait'; seconds: number };

export interface FactorAttempt {
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
  const { byAddress, byUser } = await countsFor(store, attempt);
  if (byAddress !== null) {
    const seconds = await store.attempts.count(byAddress, NETWORK_ATTEMPTS);
    if (seconds > 0) return { outcome: 'wait', seconds };
  }
  if (byUser !== null) {
    const seconds = await store.attempts.count(byUser, USER_ATTEMPTS);
    if (seconds > 0) return { outcome: 'wait', seconds };
  }
  if (!(await check())) return { outcome: 'refused' };
  await Promise.all([byAddress && store.attempts.uncount(byAddress), byUser && store.attempts.forget(byUser)]);
  return { outcome: 'accepted' };
}

/** What an attempt counts for; in a known browser not even for an address that others share. */
async function countsFor(
  store: AuthStore,
  { user, address, browser }: FactorAttempt,
): Promise<{ byAddress: string | null; byUser: string | null }> {
  const byAddress = `address ${networkOf(address)}`;
  if (user === null) return { byAddress, byUser: null };
  const ofBrowser = browser === null ? null : browserOrigin(browser);
  const origins = [...(ofBrowser ? [ofBrowser] : []), networkOrigin(address)];
  const [known] = await store.knownOrigins.known(user.tenantId, user.userId, origins);
  if (!known) return { byAddress, byUser: `factor ${user.userId}` };
  return {
    byAddress: known === ofBrowser ? null : byAddress,
    byUser: `factor ${known.toString('base64url')} ${user.userId}`,
  };
}
