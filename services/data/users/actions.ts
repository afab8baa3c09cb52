/** The users of a tenant, as other services ask for them. */
import type { ServiceBroker } from 'moleculer';
import { call, type EventHandlers } from '../../../contracts/call.ts';
import type { OperationInput } from '../../../contracts/operations.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { warnOf } from '../../../mixins/log-failure.ts';
import type { DataHandlers, Handlers } from '../handlers.ts';
import type { Tenants } from '../tenants.ts';
import { accessOfUser, unknownPrincipals } from './access.ts';
import { findUser, listUsers, noteSignIn, provisionUsers, usersHolding } from './directory.ts';
import { createPasswordLink, inviteUser, type LetInDeps, mayLetIn } from './let-in.ts';
import { forgetUnsent } from './sync.ts';

export const userActions = ({ mutation }: Handlers, database: Database, tenants: Tenants, broker: ServiceBroker) =>
  ({
    'users.get': async (ctx) => {
      const { tenantId, userId } = ctx.params;
      return isUuid(tenantId) && isUuid(userId) ? findUser(database, tenants, tenantId, { userId }) : null;
    },
    'users.access': async (ctx) => {
      const { tenantId, userId } = ctx.params;
      return accessOfUser(tenants, tenantId, userId);
    },
    'users.mayLetIn': (ctx) => mayLetIn({ database, tenants }, ctx.params),
    'principals.check': async (ctx) => unknownPrincipals(database, tenants, ctx.params),
    'users.find': async (ctx) => {
      const { tenantId, username } = ctx.params;
      return isUuid(tenantId) ? findUser(database, tenants, tenantId, { username }) : null;
    },
    'users.list': (ctx) => listUsers(database, tenants, ctx.params),
    'users.holding': (ctx) => usersHolding(database, tenants, ctx.params),
    'users.provision': async (ctx) => {
      const { tenantId, users } = ctx.params;
      const { userIds, stored } = await provisionUsers(database, tenants, tenantId, users);
      const { signInNames } = await call(ctx, 'auth.users.sync', {
        tenantId,
        users: stored.map(({ userId, user }) => ({
          userId,
          username: user.username,
          email: user.email,
          active: true,
          ...(user.password === undefined ? {} : { password: user.password }),
          ...(user.invite === undefined ? {} : { invite: user.invite }),
        })),
      });
      await forgetUnsent(database, tenantId, Object.values(userIds));
      return { userIds, signInNames };
    },
    'users.createPasswordLink': mutation((request, input: OperationInput<'users.passwordLinks.create'>) =>
      createPasswordLink(letInDeps(database, tenants, broker), request, input),
    ),
    'users.invite': mutation((request, input: OperationInput<'users.invitations.create'>) =>
      inviteUser(letInDeps(database, tenants, broker), request, input),
    ),
  }) satisfies Partial<DataHandlers>;

const letInDeps = (database: Database, tenants: Tenants, broker: ServiceBroker): LetInDeps => ({
  database,
  tenants,
  prepareLink: (user) => call(broker, 'auth.users.prepareLink', user),
  mayInvite: (user) => call(broker, 'auth.users.mayInvite', user),
});

export const userEvents = (database: Database, log: ServiceBroker['logger']) =>
  ({
    'auth.user.signedIn': async (ctx) => {
      const { tenantId, userId, at } = ctx.params;
      await noteSignIn(database, tenantId, userId, at).catch((error: unknown) =>
        warnOf(log, error, 'The time of a sign-in was not recorded.', { tenantId, userId }),
      );
    },
  }) satisfies EventHandlers;
