/** The users of a tenant, as other services ask for them. */
import type { Context, ServiceBroker } from 'moleculer';
import type { AuthEvents } from '../../../contracts/auth.ts';
import { call } from '../../../contracts/call.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Database } from '../../../mixins/database/database.ts';
import type { ActionContext } from '../handlers.ts';
import type { Tenants } from '../tenants.ts';
import { findUser, noteSignIn, provisionUsers } from './directory.ts';
import { forgetUnsent } from './sync.ts';

export const userActions = (database: Database, tenants: Tenants) => ({
  'users.get': async (ctx: ActionContext<'data.users.get'>) => {
    const { tenantId, userId } = ctx.params;
    return isUuid(tenantId) && isUuid(userId) ? findUser(database, tenants, tenantId, { userId }) : null;
  },
  'users.find': async (ctx: ActionContext<'data.users.find'>) => {
    const { tenantId, username } = ctx.params;
    return isUuid(tenantId) ? findUser(database, tenants, tenantId, { username }) : null;
  },
  'users.provision': async (ctx: ActionContext<'data.users.provision'>) => {
    const { tenantId, users } = ctx.params;
    const { userIds, stored } = await provisionUsers(database, tenants, tenantId, users);
    await call(ctx, 'auth.users.sync', {
      tenantId,
      users: stored.map(({ userId, user }) => ({
        userId,
        username: user.username,
        email: user.email,
        active: true,
        ...(user.password === undefined ? {} : { password: user.password }),
      })),
    });
    await forgetUnsent(database, tenantId, Object.values(userIds));
    return { userIds };
  },
});

export const userEvents = (database: Database, log: () => ServiceBroker['logger']) => ({
  'auth.user.signedIn': async (ctx: Context<AuthEvents['auth.user.signedIn']>) => {
    const { tenantId, userId, at } = ctx.params;
    await noteSignIn(database, tenantId, userId, at).catch((error: unknown) =>
      log().warn({ err: error, tenantId, userId }, 'The time of a sign-in was not recorded.'),
    );
  },
});
