/** Attempts with passkeys, codes of an app and recovery codes: bounded by user and by network address. */
import { networkOf } from '../../../lib/values/network.ts';
import { NETWORK_ATTEMPTS, USER_ATTEMPTS } from '../attempt-limits.ts';
import type { UserKey } from '../store/factors.ts';
import type { AuthStore } from '../store/store.ts';

export type Judged = { outcome: 'accepted' } | { outcome: 'refused' } | { outcome: 'wait'; seconds: number };

/** Counts an attempt before `check` judges it; a right one is taken back. `user`: null before one is known. */
export async function attemptFactor(
  store: AuthStore,
  { user, address }: { user: UserKey | null; address: string },
  check: () => Promise<boolean>,
): Promise<Judged> {
  const byAddress = `address ${networkOf(address)}`;
  const byUser = user && `factor ${user.userId}`;
  const waits = [await store.attempts.count(byAddress, NETWORK_ATTEMPTS)];
  if (byUser && waits[0] === 0) waits.push(await store.attempts.count(byUser, USER_ATTEMPTS));
  const seconds = Math.max(...waits);
  if (seconds > 0) return { outcome: 'wait', seconds };
  if (!(await check())) return { outcome: 'refused' };
  await Promise.all([store.attempts.uncount(byAddress), byUser && store.attempts.forget(byUser)]);
  return { outcome: 'accepted' };
}
