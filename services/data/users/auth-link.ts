/** This service's calls to auth about users: report changed ones, and check whether a username is free. */
import { call } from '../../../contracts/call.ts';
import { warnOf } from '../../../mixins/log-failure.ts';
import type { Platform } from '../../../mixins/platform.ts';
import type { MutationDeps } from '../write/write.ts';
import { type SendUser, sendUnsentUsers, USER_SYNC_JOBS } from './sync.ts';

interface AuthLink extends Pick<MutationDeps, 'usersChanged' | 'checkUsername'> {
  /** Offers to inform auth of users later, when that failed at first. */
  readonly start: () => Promise<void>;
  /** Resolves when no user is on the way to auth. */
  readonly idle: () => Promise<void>;
}

export function authLink({ database, jobs, broker, log }: Platform): AuthLink {
  // One at a time: a user on the way to auth occupies a connection, and auth needs one as well.
  let sending: Promise<void> = Promise.resolve();
  const send: SendUser = (tenantId, user) => call(broker, 'auth.users.sync', { tenantId, users: [user] });
  const sendLater = async (tenantId: string, error: unknown): Promise<void> => {
    const warn = (problem: unknown): void =>
      warnOf(log, problem, 'Could not sync users to auth; it will be retried.', { tenantId });
    warn(error);
    await jobs.enqueue(USER_SYNC_JOBS, { tenantId }, { key: tenantId, afterSeconds: 1 }).catch(warn);
  };
  return {
    start: () => jobs.work(USER_SYNC_JOBS, ({ payload }) => sendUnsentUsers(database, payload.tenantId, send)),
    idle: () => sending,
    // Awaited by the change: who creates a user finds that they can sign in.
    usersChanged: (tenantId) => {
      sending = sending
        .then(() => sendUnsentUsers(database, tenantId, send))
        .catch((error: unknown) => sendLater(tenantId, error));
      return sending;
    },
    checkUsername: async (tenantId, userId, username) => {
      await call(broker, 'auth.users.sync', {
        tenantId,
        users: [{ userId, username, email: username, active: true }],
        checkOnly: true,
      });
    },
  };
}
