/** The actions of auth, each a call of its authorization server. */
import { type AuthActions, UsersToSync } from '../../contracts/auth.ts';
import { type ActionHandlers, call } from '../../contracts/call.ts';
import { requestContext } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { bodyViolations } from '../../lib/validation.ts';
import { identity } from './identity.ts';
import type { AuthServer } from './server.ts';
import { operatorAct } from './store/entries.ts';

export function authActions(server: AuthServer) {
  return {
    'http.handle': (ctx) => server.handle(ctx.params),
    'keys.list': async () => ({ keys: await server.publicKeys() }),
    'keys.rotate': async () => {
      await server.rotateKeys();
      await server.operatorAudit.noteForAll('auth.keys.rotate');
      return { keys: await server.publicKeys() };
    },
    'secrets.reseal': async () => {
      const resealed = await server.reseal();
      await server.operatorAudit.noteForAll('auth.secrets.reseal');
      return { resealed };
    },
    'grants.check': (ctx) => server.checkGrants(ctx.params),
    'grants.noteEnded': async (ctx) => {
      await server.noteEnded(ctx.params.grantIds);
      return null;
    },
    'origins.check': async (ctx) => ({
      allowed: await server.clients.allowsOrigin(ctx.params.origin, ctx.params.clientId),
    }),
    'calendarLinks.find': (ctx) => server.calendarOf(ctx.params.token),
    'users.sync': async (ctx) => {
      const errors = bodyViolations(UsersToSync, ctx.params);
      if (errors.length > 0)
        throw new PlatformError('PARAMETER_INVALID', 'The list of users is invalid.', { errors: [...errors] });
      const { tenantId, users, checkOnly } = ctx.params;
      return { signInNames: await server.users.sync(tenantId, users, checkOnly) };
    },
    'users.createLink': (ctx) => server.users.createPasswordLink(ctx.params.username, ctx.params.tenantId),
    'users.prepareLink': (ctx) => server.users.prepareLink(ctx.params.tenantId, ctx.params.userId),
    'users.mayInvite': (ctx) => server.users.mayInvite(ctx.params.tenantId, ctx.params.userId),
    'mails.askApprovers': async (ctx) => {
      await server.mail.askApprovers(ctx.params);
      return null;
    },
    'mails.notify': (ctx) => server.mail.notify(ctx.params),
    'mails.organizer': (ctx) => server.mail.organizer(ctx.params),
    'mails.states': (ctx) => server.mail.states(ctx.params),
    'domains.add': (ctx) => server.domains.add(ctx.params.tenantId, ctx.params.domain),
    'domains.check': async (ctx) => {
      await server.domains.check(ctx.params.key, ctx.params.domains);
      return null;
    },
    'domains.remove': async (ctx) => ({
      removed: await server.domains.remove(ctx.params.tenantId, ctx.params.domain),
    }),
    'identityProviders.setSecret': (ctx) =>
      server.identityProviders.setSecret(ctx.params.tenantId, ctx.params.apiName, ctx.params.secret),
    'identityProviders.check': (ctx) => server.identityProviders.check(ctx.params.tenantId, ctx.params.apiName),
    'identities.remove': async (ctx) => ({
      removed: await server.users.removeIdentities(ctx.params.username, ctx.params.tenantId),
    }),
    'domains.list': async (ctx) => ({ domains: await server.domains.list(ctx.params.tenantId) }),
    'factors.reset': (ctx) => server.users.resetFactors(ctx.params.username, ctx.params.tenantId),
    'users.revoke': async (ctx) => {
      const { tenantId, userId } = ctx.params;
      const entry = operatorAct('auth.users.revoke', { userId });
      return { revoked: await server.users.revoke(tenantId, userId, entry) };
    },
    'clients.rotateSecret': async (ctx) => {
      const secret = await server.clients.rotateSecret(ctx.params.tenantId, ctx.params.apiName);
      if (secret === null)
        throw new PlatformError('PARAMETER_INVALID', 'There is no client of this name that authenticates by secret.');
      return { secret };
    },
    'deprecatedUses.add': async (ctx) => {
      await server.addDeprecatedUses(ctx.params.uses);
      return null;
    },
    'deprecatedUses.list': (ctx) => server.deprecatedUses(ctx.params),
    'connections.list': (ctx) => server.connections(requestContext(ctx), ctx.params),
    'identity.get': (ctx) => {
      const request = requestContext(ctx);
      const { tenantId, userId } = request;
      return identity(request, server.clients, () => call(ctx, 'data.users.get', { tenantId, userId }));
    },
  } satisfies ActionHandlers<'auth', AuthActions>;
}
