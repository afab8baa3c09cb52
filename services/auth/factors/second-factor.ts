/** Judges a code that somebody typed as second factor: bounded by user and by network address. */
import { networkOf } from '../../../lib/values/network.ts';
import type { UserKey } from '../store/factors.ts';
import type { AuthStore } from '../store/store.ts';

const USER_FREE_FAILURES = 5;
const USER_WAIT_MAX_SECONDS = 300;
const ADDRESS_FREE_FAILURES = 30;
const ADDRESS_WAIT_MAX_SECONDS = 60;

export type Judged = { outcome: 'accepted' } | { outcome: 'refused' } | { outcome: 'wait'; seconds: number };

/** Counts an attempt before `check` judges it; a right one is taken back. `user`: null before one is known. */
export async function judge(
  store: AuthStore,
  { user, address }: { user: UserKey | null; address: string },
  check: () => Promise<boolean>,
): Promise<Judged> {
  const byAddress = `address ${networkOf(address)}`;
  const byUser = user && `factor ${user.userId}`;
  const waits = [await store.attempts.count(byAddress, ADDRESS_FREE_FAILURES, ADDRESS_WAIT_MAX_SECONDS)];
  if (byUser && waits[0] === 0)
    waits.push(await store.attempts.count(byUser, USER_FREE_FAILURES, USER_WAIT_MAX_SECONDS));
  const seconds = Math.max(...waits);
  if (seconds > 0) return { outcome: 'wait', seconds };
  if (!(await check())) return { outcome: 'refused' };
  await Promise.all([store.attempts.uncount(byAddress), byUser && store.attempts.forget(byUser)]);
  return { outcome: 'accepted' };
}
