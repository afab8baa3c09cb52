/** The Moleculer schema of auth: what it is made of, and what it needs from other services and from the process. */

import type { ServiceBroker, ServiceSchema } from 'moleculer';
import { type Config, publicDemoPassword } from '../../config/env.ts';
import { broadcast, call, type EventHandlers, emit } from '../../contracts/call.ts';
import { messageOf } from '../../lib/errors/thrown.ts';
import type { Snapshot } from '../../lib/schema/snapshot.ts';
import { platformTime } from '../../lib/values/clock.ts';
import { formatTimestamp } from '../../lib/values/time.ts';
import { agreeOnSecret } from '../../mixins/database/installation.ts';
import { logFailure, warnOf } from '../../mixins/log-failure.ts';
import type { Platform } from '../../mixins/platform.ts';
import { sealingKeys } from '../../mixins/sealing-keys.ts';
import { isServiceUnavailable } from '../../mixins/service-unavailable.ts';
import { authActions } from './actions.ts';
import type { TenantSource } from './clients.ts';
import { transportFor } from './mail/transport.ts';
import { Refusals } from './refusals.ts';
import { AuthServer, type AuthServerOptions } from './server.ts';
import { AuthStore } from './store/store.ts';

const MAINTENANCE_MS = 5 * 60_000;
const CLEANING_MS = 60_000;
const ENTRIES_MS = 15_000;
const SWEEP_MS = 5_000;

export default async function authService(platform: Platform): Promise<ServiceSchema> {
  const { config, database, jobs, metrics, broker, log, outbound } = platform;
  const refusals = new Refusals({
    deny: (entry) => call(broker, 'data.audit.denySignIn', entry),
    suppress: (suppressed) => call(broker, 'data.audit.suppress', suppressed),
  });
  const server = new AuthServer({
    store: new AuthStore(database, {
      send: (entry) => call(broker, 'data.audit.note', entry),
      failed: (error) => warnOf(log, error, 'An entry of an audit trail was not sent yet; it is sent again.'),
    }),
    source: tenantSource(broker),
    secrets: config,
    sealingKeys: await sealingKeys(platform, 'cursors of connections'),
    baseUrl: config.baseUrl ?? `http://localhost:${config.port}`,
    baseUrlFixed: config.baseUrl !== null,
    referenceSignIn: config.referenceSignIn,
    demoPassword: publicDemoPassword(config),
    ...announcements(broker),
    resealed: () => agreeOnSecret(database, config),
    signInRefused: (refusal, origin) => refusals.note(refusal, origin),
    secondFactor: config.production ? 'administrators' : 'off',
    user: (of) => call(broker, 'data.users.get', of),
    async systemPermissions(of) {
      const user = await call(broker, 'data.users.get', of);
      return user?.systemPermissions ?? [];
    },
    mayLetIn: (link) => call(broker, 'data.users.mayLetIn', link),
    outbound,
    isUser: async (tenantId, username) => (await call(broker, 'data.users.find', { tenantId, username })) !== null,
    async createUser(tenantId, user) {
      await call(broker, 'data.users.provision', { tenantId, users: [{ ...user, invite: false }] });
    },
    providerFailed: ({ tenantId, meta }, reason) =>
      log.warn({ tenantId, identityProvider: meta.apiName, reason }, 'A sign-in at an identity provider failed.'),
    stopMails: (token) => call(broker, 'notifications.mails.stop', { token }),
    mail: {
      database,
      transport: transportFor(config.mail),
      user: (of) => call(broker, 'data.users.get', of),
      log,
    },
    documentRefused: (address, reason) =>
      log.warn({ address, reason: messageOf(reason) }, 'The metadata document of a client cannot be used.'),
    onError: (error) => logFailure(log, 'A sign-in request', null, error),
  });
  database.onReplaced(() => {
    server.clients.forgetAll();
    server.forgetKeys();
  });
  let timers: NodeJS.Timeout[] = [];
  return {
    name: 'auth',
    actions: authActions(server),
    events: {
      'auth.keys.rotated': () => server.forgetKeys(),
      'metadata.schema.changed': (ctx) =>
        server.clients.refreshOrigins(ctx.params.tenantId).catch((error: unknown) => {
          // metadata tells of a change while it starts, before it can be asked about it; maintenance catches up.
          if (!isServiceUnavailable(error)) throw error;
        }),
      'metadata.tenant.changed': (ctx) => server.clients.forget(ctx.params.tenantId),
    } satisfies EventHandlers,
    created() {
      server.clients.register(metrics);
    },
    async started() {
      await server.start();
      tellHowMailsLeave(config, log);
      server.mail.register(metrics);
      server.mail.start();
      // A mail that is being sent ends before the process does.
      jobs.onLeave(() => server.mail.stop());
      const every = (ms: number, work: () => Promise<void>): NodeJS.Timeout =>
        setInterval(() => {
          work().catch((error) => warnOf(log, error, 'Maintenance of auth failed.'));
        }, ms).unref();
      timers = [
        every(MAINTENANCE_MS, () => server.maintain()),
        every(CLEANING_MS, () => server.clean()),
        every(ENTRIES_MS, () => server.sendEntries()),
        setInterval(() => refusals.sweep(), SWEEP_MS).unref(),
      ];
    },
    async stopped() {
      for (const timer of timers) clearInterval(timer);
      await server.mail.stop();
      server.mail.unregister(metrics);
      await refusals.close();
    },
  };
}

const tenantSource = (broker: ServiceBroker): TenantSource => ({
  tenant: (by) => call(broker, 'metadata.tenants.get', by),
  tenants: (after, take) => call(broker, 'metadata.tenants.list', after === undefined ? { take } : { after, take }),
  async snapshot(tenantId, version) {
    const found = await call(broker, 'metadata.snapshots.get', { tenantId, version });
    const snapshot: Snapshot | null = found && JSON.parse(found.snapshot.toString('utf8'));
    return snapshot;
  },
});

type Announcements = Pick<AuthServerOptions, 'grantsEnded' | 'keysRotated' | 'signedIn'>;

const announcements = (broker: ServiceBroker): Announcements => ({
  grantsEnded: (grantIds) => broadcast(broker, 'auth.grants.revoked', { grantIds }),
  keysRotated: () => broadcast(broker, 'auth.keys.rotated', {}),
  signedIn: (tenantId, userId) =>
    emit(broker, 'auth.user.signedIn', { tenantId, userId, at: formatTimestamp(platformTime()) }),
});

function tellHowMailsLeave({ mail }: Config, logger: ServiceBroker['logger']): void {
  if (mail.by === 'folder')
    logger.info({ folder: mail.folder }, 'Mails are written to a folder, since SMTP_URL is not set.');
  if (mail.by === 'nothing')
    logger.warn(
      'No mails are sent, since SMTP_URL is not set: administrators and operators hand over links themselves.',
    );
}
