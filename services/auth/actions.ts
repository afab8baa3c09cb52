/** The actions of auth, each a call of its authorization server. */
import type { AuthActions } from '../../contracts/auth.ts';
import { type ActionHandlers, call } from '../../contracts/call.ts';
import { requestContext } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { identity } from './identity.ts';
import type { AuthServer } from './server.ts';

export function authActions(server: () => AuthServer) {
  return {
    'http.handle': (ctx) => server().handle(ctx.params),
    'keys.list': async () => ({ keys: await server().publicKeys() }),
    'keys.rotate': async () => {
      await server().rotateKeys();
      return { keys: await server().publicKeys() };
    },
    'secrets.reseal': async () => ({ resealed: await server().reseal() }),
    'grants.check': (ctx) => server().checkGrants(ctx.params.grants),
    'origins.check': async (ctx) => ({
      allowed: await server().clients.allowsOrigin(ctx.params.origin, ctx.params.clientId),
    }),
    'users.sync': async (ctx) => ({
      signInNames: await server().users.sync(ctx.params.tenantId, ctx.params.users, ctx.params.checkOnly),
    }),
    'users.createLink': (ctx) => server().users.createPasswordLink(ctx.params.username, ctx.params.tenantId),
    'domains.add': (ctx) => server().domains.add(ctx.params.tenantId, ctx.params.domain),
    'domains.remove': async (ctx) => ({
      removed: await server().domains.remove(ctx.params.tenantId, ctx.params.domain),
    }),
    'domains.list': async (ctx) => ({ domains: await server().domains.list(ctx.params.tenantId) }),
    'factors.reset': (ctx) => server().users.resetFactors(ctx.params.username, ctx.params.tenantId),
    'users.revoke': async (ctx) => ({
      revoked: await server().users.revoke(ctx.params.tenantId, ctx.params.userId),
    }),
    'clients.rotateSecret': async (ctx) => {
      const secret = await server().clients.rotateSecret(ctx.params.tenantId, ctx.params.apiName);
      if (secret === null)
        throw new PlatformError('PARAMETER_INVALID', 'There is no client of this name that authenticates by secret.');
      return { secret };
    },
    'identity.get': (ctx) => {
      const request = requestContext(ctx);
      const { tenantId, userId } = request;
      return identity(request, server().clients, () => call(ctx, 'data.users.get', { tenantId, userId }));
    },
  } satisfies ActionHandlers<'auth', AuthActions>;
}
