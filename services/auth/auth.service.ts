import type { ServiceSchema } from 'moleculer';
import type { AuthActions } from '../../contracts/auth.ts';
import { type ActionHandlers, broadcast, call, type EventHandlers, emit } from '../../contracts/call.ts';
import { requestContext } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { Snapshot } from '../../lib/schema/snapshot.ts';
import { formatTimestamp } from '../../lib/values/time.ts';
import type { Platform } from '../../mixins/platform.ts';
import { identity } from './identity.ts';
import { AuthServer } from './server.ts';
import { AuthStore } from './store/store.ts';

const MAINTENANCE_MS = 5 * 60_000;

/** The Moleculer schema of auth: it declares and delegates. */
export default function authService({ config, database }: Platform): ServiceSchema {
  let server: AuthServer;
  let maintenance: NodeJS.Timeout;
  return {
    name: 'auth',
    actions: {
      'http.handle': (ctx) => server.handle(ctx.params),
      'keys.list': async () => ({ keys: await server.publicKeys() }),
      'keys.rotate': async () => {
        await server.rotateKeys();
        return { keys: await server.publicKeys() };
      },
      'grants.check': (ctx) => server.checkGrants(ctx.params.grants),
      'origins.check': async (ctx) => ({
        allowed: await server.clients.allowsOrigin(ctx.params.origin, ctx.params.clientId),
      }),
      'users.sync': async (ctx) => ({
        synced: await server.syncUsers(ctx.params.tenantId, ctx.params.users, ctx.params.checkOnly),
      }),
      'users.createLink': async (ctx) => {
        const link = await server.createPasswordLink(ctx.params.username);
        if (!link) throw new PlatformError('PARAMETER_INVALID', 'No active user has this username.');
        return link;
      },
      'users.revoke': async (ctx) => ({
        revoked: await server.revokeUser(ctx.params.tenantId, ctx.params.userId),
      }),
      'clients.rotateSecret': async (ctx) => {
        const secret = await server.clients.rotateSecret(ctx.params.tenantId, ctx.params.apiName);
        if (secret === null)
          throw new PlatformError('PARAMETER_INVALID', 'There is no client of this name that authenticates by secret.');
        return { secret };
      },
      'identity.get': (ctx) => {
        const request = requestContext(ctx);
        const { tenantId, userId } = request;
        return identity(request, server.clients, () => call(ctx, 'data.users.get', { tenantId, userId }));
      },
    } satisfies ActionHandlers<'auth', AuthActions>,
    events: {
      'auth.keys.rotated': () => server.forgetKeys(),
      'metadata.schema.changed': (ctx) => server.clients.refreshOrigins(ctx.params.tenantId),
    } satisfies EventHandlers,
    created() {
      const { broker, logger } = this;
      server = new AuthServer({
        store: new AuthStore(database),
        source: {
          tenant: (by) => call(broker, 'metadata.tenants.get', by),
          tenants: (after, take) =>
            call(broker, 'metadata.tenants.list', after === undefined ? { take } : { after, take }),
          async snapshot(tenantId, version) {
            const found = await call(broker, 'metadata.snapshots.get', { tenantId, version });
            return found && (JSON.parse(found.snapshot.toString('utf8')) as Snapshot);
          },
        },
        secret: config.secret,
        baseUrl: config.baseUrl ?? `http://localhost:${config.port}`,
        baseUrlFixed: config.baseUrl !== null,
        grantsEnded: (grantIds) => broadcast(broker, 'auth.grants.revoked', { grantIds }),
        keysRotated: () => broadcast(broker, 'auth.keys.rotated', {}),
        signedIn: (tenantId, userId) =>
          emit(broker, 'auth.user.signedIn', { tenantId, userId, at: formatTimestamp(Date.now()) }),
        sendPasswordLink(user, url) {
          // The mail channel replaces this line. The link is a credential, so production never logs it.
          if (config.production) logger.warn(`A set-password link for ${user.email} waits for the mail channel.`);
          else logger.info(`Set-password link for ${user.username}: ${url}`);
        },
        onError: (error) => logger.error({ err: error }, 'A sign-in request failed.'),
      });
    },
    async started() {
      await server.start();
      maintenance = setInterval(() => {
        server.maintain().catch((error) => this.logger.warn({ err: error }, 'Maintenance of auth failed.'));
      }, MAINTENANCE_MS);
      maintenance.unref();
    },
    async stopped() {
      clearInterval(maintenance);
    },
  };
}
