/** The Moleculer schema of data: it declares and delegates. */
import type { Context, ServiceBroker, ServiceSchema } from 'moleculer';
import type { AuthEvents } from '../../contracts/auth.ts';
import { call } from '../../contracts/call.ts';
import type { DataActions } from '../../contracts/data.ts';
import { requestContext } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply } from '../../lib/operation.ts';
import { isUuid } from '../../lib/values/ids.ts';
import type { Platform } from '../../mixins/platform.ts';
import { SnapshotCache } from '../../mixins/snapshot-cache/snapshot-cache.ts';
import { explainAccess } from './explain/answer.ts';
import { type PeriodicWork, startPeriodic } from './periodic.ts';
import * as reads from './read/reads.ts';
import { loadSamples } from './samples.ts';
import { cursorKey } from './secrets.ts';
import { listShares } from './shares/list.ts';
import { sweepTenant } from './sweep.ts';
import { Tenants } from './tenants.ts';
import { listAudit } from './trail/audit-list.ts';
import { sealTenant } from './trail/chain.ts';
import { listChanges } from './trail/changes.ts';
import { recordDenial } from './trail/denial.ts';
import { listHistory } from './trail/history.ts';
import { verifyTenant } from './trail/verify.ts';
import { listTransitions } from './transitions/list.ts';
import { findUser, noteSignIn, provisionUsers } from './users/directory.ts';
import { forgetUnsent, sendUnsentUsers, type UserSync } from './users/sync.ts';
import { type Asked, type MutationDeps, mutate } from './write/mutate.ts';

type Params<K extends keyof DataActions> = Context<DataActions[K]['params']>;
type PublicCall = Context<OperationCall>;

const SWEEP_EVERY_SECONDS = 600;
const SWEEP_ASKED_EVERY_MS = 60_000;
const SEAL_EVERY_SECONDS = 30;
const SEAL_ASKED_EVERY_MS = 15_000;

export default function dataService(platform: Platform): ServiceSchema {
  const { database } = platform;
  let broker: ServiceBroker;
  let readDeps: reads.ReadDeps;
  let stops: (() => void)[] = [];
  let stopped = false;
  // One at a time: a user on the way to auth occupies a connection, and auth needs one as well.
  let sending: Promise<unknown> = Promise.resolve();

  const snapshots = new SnapshotCache((tenantId, version) =>
    call(broker, 'metadata.snapshots.get', version === undefined ? { tenantId } : { tenantId, version }),
  );
  const tenants = new Tenants(database, snapshots);
  const sync: UserSync = {
    send: (tenantId, user) => call(broker, 'auth.users.sync', { tenantId, users: [user] }),
    failed: (tenantId, userId, error) =>
      broker.logger.warn({ err: error, tenantId, userId }, 'auth was not told about a user; it will be told later.'),
  };
  const writeDeps: MutationDeps = {
    platform,
    tenants,
    sealingKey: () => readDeps.cursorKey,
    usersChanged: (tenantId) => {
      const sent = sending.then(() => sendUnsentUsers(database, tenantId, sync));
      sending = sent.catch((error) => sync.failed(tenantId, '', error));
      return sending as Promise<void>;
    },
    checkUsername: async (tenantId, userId, username) => {
      await call(broker, 'auth.users.sync', {
        tenantId,
        users: [{ userId, username, email: username, active: true }],
        checkOnly: true,
      });
    },
  };

  /** What goes wrong inside is for the log; the caller gets the code and the request id. */
  const logged = (ctx: PublicCall, answer: Promise<OperationReply>): Promise<OperationReply> =>
    answer.catch((error: unknown) => {
      const cause = error instanceof PlatformError ? error.cause : error;
      if (cause !== undefined)
        broker.logger.error(
          { err: cause, requestId: requestContext(ctx).requestId },
          `${ctx.params.operationId} failed.`,
        );
      throw error;
    });
  const read =
    (operation: reads.Read) =>
    (ctx: PublicCall): Promise<OperationReply> =>
      logged(ctx, reads.runRead(operation, readDeps, requestContext(ctx), ctx.params));
  const write =
    (mutation: Asked) =>
    (ctx: PublicCall): Promise<OperationReply> =>
      logged(ctx, mutate(writeDeps, mutation, requestContext(ctx), ctx.params));

  const periodic = (what: Pick<PeriodicWork, 'name' | 'everySeconds' | 'askedEveryMs' | 'work'>, text: string) =>
    startPeriodic(
      database,
      {
        ...what,
        tenants: (after) =>
          call(broker, 'metadata.tenants.list', after === undefined ? { take: 500 } : { after, take: 500 }),
        failed: (tenantId, error) => broker.logger.warn({ err: error, tenantId }, text),
      },
      5_000 + Math.random() * 10_000,
    );

  return {
    name: 'data',
    actions: {
      'objects.list': read(reads.listObjects),
      'objects.describe': read(reads.describe),
      'objects.getSchema': read(reads.getSchema),
      'records.list': read(reads.listRecords),
      'records.query': read(reads.queryRecords),
      'records.get': read(reads.getRecord),
      'records.create': write('create'),
      'records.update': write('update'),
      'records.delete': write('delete'),
      'records.upsert': write('upsert'),
      'records.restore': write('restore'),
      'transitions.list': read(listTransitions),
      'transitions.execute': write('transition'),
      'history.list': read(listHistory),
      'audit.list': read(listAudit),
      'access.explain': read(explainAccess),
      'shares.list': read(listShares),
      'shares.create': write('share'),
      'shares.delete': write('unshare'),
      'changes.list': read(listChanges),

      'users.get': async (ctx: Params<'data.users.get'>) => {
        const { tenantId, userId } = ctx.params;
        return isUuid(tenantId) && isUuid(userId) ? findUser(database, tenants, tenantId, { userId }) : null;
      },
      'users.find': async (ctx: Params<'data.users.find'>) => {
        const { tenantId, username } = ctx.params;
        return isUuid(tenantId) ? findUser(database, tenants, tenantId, { username }) : null;
      },
      'users.provision': async (ctx: Params<'data.users.provision'>) => {
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
      'audit.deny': (ctx: Params<'data.audit.deny'>) => recordDenial(database, requestContext(ctx), ctx.params),
      'audit.seal': async (ctx: Params<'data.audit.seal'>) => ({
        sealed: await sealTenant(database, ctx.params.tenantId, () => stopped),
      }),
      'audit.verify': (ctx: Params<'data.audit.verify'>) => verifyTenant(database, ctx.params),
      'samples.load': (ctx: Params<'data.samples.load'>) => loadSamples(database, tenants, ctx.params),
    },
    events: {
      'auth.user.signedIn': async (ctx: { params: AuthEvents['auth.user.signedIn'] }) => {
        const { tenantId, userId, at } = ctx.params;
        await noteSignIn(database, tenantId, userId, at).catch((error: unknown) =>
          broker.logger.warn({ err: error }, 'The time of a sign-in was not noted.'),
        );
      },
    },
    created() {
      broker = this.broker;
    },
    async started() {
      readDeps = { database, tenants, cursorKey: await cursorKey(platform), statements: new reads.PreparedReads() };
      stops = [
        periodic(
          {
            name: 'tenants',
            everySeconds: SWEEP_EVERY_SECONDS,
            askedEveryMs: SWEEP_ASKED_EVERY_MS,
            work: (tenantId) => sweepTenant(database, tenantId, sync),
          },
          'Expired rows of a tenant were not removed; next time.',
        ),
        periodic(
          {
            name: 'audit',
            everySeconds: SEAL_EVERY_SECONDS,
            askedEveryMs: SEAL_ASKED_EVERY_MS,
            work: (tenantId) => sealTenant(database, tenantId, () => stopped),
          },
          'The audit trail of a tenant was not sealed; next time.',
        ),
      ];
    },
    async stopped() {
      stopped = true;
      for (const stop of stops) stop();
      await sending;
    },
  };
}
