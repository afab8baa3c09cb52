/** This service's calls to auth about users: report changed ones, and check whether a username is free. */
import type { ServiceBroker } from 'moleculer';
import { call } from '../../../contracts/call.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { warnOf } from '../../../mixins/log-failure.ts';
import type { MutationDeps } from '../write/write.ts';
import { sendUnsentUsers, type UserSync } from './sync.ts';

interface AuthLink extends Pick<MutationDeps, 'usersChanged' | 'checkUsername'> {
  readonly sync: UserSync;
  /** Resolves when no user is on the way to auth. */
  readonly idle: () => Promise<void>;
}

/** `broker` is asked at each call: it is known only once the service is created. */
export function authLink(database: Database, broker: () => ServiceBroker): AuthLink {
  // One at a time: a user on the way to auth occupies a connection, and auth needs one as well.
  let sending: Promise<void> = Promise.resolve();
  const sync: UserSync = {
    send: (tenantId, user) => call(broker(), 'auth.users.sync', { tenantId, users: [user] }),
    failed: (tenantId, userId, error) =>
      warnOf(broker().logger, error, 'Could not sync a user to auth; it will be retried.', { tenantId, userId }),
  };
  return {
    sync,
    idle: () => sending,
    usersChanged: (tenantId) => {
      sending = sending
        .then(() => sendUnsentUsers(database, tenantId, sync))
        .then(
          () => {},
          (error: unknown) => sync.failed(tenantId, '', error),
        );
      return sending;
    },
    checkUsername: async (tenantId, userId, username) => {
      await call(broker(), 'auth.users.sync', {
        tenantId,
        users: [{ userId, username, email: username, active: true }],
        checkOnly: true,
      });
    },
  };
}
