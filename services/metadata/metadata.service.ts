import type { ServiceSchema } from 'moleculer';
import { LEASE_CONNECTIONS } from '../../config/services.ts';
import { type ActionHandlers, broadcast, type Caller, call, emit } from '../../contracts/call.ts';
import type { MetadataActions } from '../../contracts/metadata.ts';
import { requestContext } from '../../lib/context.ts';
import { Database } from '../../mixins/database/database.ts';
import { warnOf } from '../../mixins/log-failure.ts';
import { NOTICES, requestNotice } from '../../mixins/notices.ts';
import type { Platform } from '../../mixins/platform.ts';
import { sealingKeys } from '../../mixins/sealing-keys.ts';
import { MetadataOperations } from './actions/operations.ts';
import { tenantActions } from './actions/tenants.ts';
import { LEASE_SECONDS } from './deployments/lease.ts';
import { deploymentQueue } from './deployments/queue.ts';
import { DeploymentWorker } from './deployments/run.ts';
import { Telemetry } from './deployments/telemetry.ts';
import { IndexUpkeep } from './indexes.ts';
import { erasePeriodically } from './lifecycle/erase.ts';
import { registerTenantNumbers } from './lifecycle/numbers.ts';
import type { FindUser } from './permission.ts';
import { Planning } from './planning/planning.ts';
import { purgePeriodically } from './retention.ts';
import { Snapshots } from './snapshots.ts';
import { upgradeTenants } from './tenants.ts';

/** Dead jobs in one answer. */
const DEAD_JOBS_MAX = 200;
/** A warning of a plan is not worth a longer wait. */
const DOMAINS_MS = 2_000;
/** Deployments that are under way when the process stops have this long to be given back. */
const GIVE_BACK_MS = 8_000;
/** Their work was waited for already. */
const LEASES_CLOSE_MS = 1_000;

const NOT_UPGRADED =
  'The tables of a tenant could not be brought up to date; some of its requests are answered with 503 until `npm run ' +
  'migrate` has done so.';

const LEFT = 'Something of an erased tenant is left in these tables; it is looked for again in every round.';

/** The Moleculer schema of metadata: it declares and delegates. */
export default async function metadataService(platform: Platform): Promise<ServiceSchema> {
  const { database, broker, log } = platform;
  const warn = (error: unknown, message: string): void => warnOf(log, error, message);
  const changed = (tenantId: string, metadataVersion: number): void =>
    broadcast(broker, 'metadata.schema.changed', { tenantId, metadataVersion });
  const tenantChanged = (tenantId: string): void => broadcast(broker, 'metadata.tenant.changed', { tenantId });
  // A plan is the same without it, but for a warning: no deployment waits for auth.
  const domains = (tenantId: string): Promise<readonly string[] | null> =>
    call(broker, 'auth.domains.list', { tenantId }, { timeout: DOMAINS_MS }).then(
      (found) => found.domains,
      () => null,
    );
  const planning = new Planning();
  const snapshots = new Snapshots(database);
  const leases = new Database(database.url, {
    size: LEASE_CONNECTIONS,
    applicationName: `erp metadata leases ${platform.config.nodeId}`,
    onError: (error) => warn(error, 'A connection that keeps the leases of deployments was lost; it is made anew.'),
    watchesLink: true,
  });
  const telemetry = new Telemetry(log);
  const worker = new DeploymentWorker(database, {
    leases,
    telemetry,
    planning,
    domains,
    leaseSeconds: LEASE_SECONDS,
    rateLimits: platform.config.rateLimits,
    committed: changed,
    notify: (tx, caller, notice) => requestNotice(tx, platform.jobs, caller, notice),
    told: (tenantId) => emit(broker, 'events.log.written', { tenantIds: [tenantId] }),
    failed: (error, deploymentId) => warn(error, `Deployment ${deploymentId} was not applied.`),
  });
  const queue = deploymentQueue(leases, {
    run: (tenantId) => worker.run(tenantId),
    failed: (error, tenantId) =>
      warn(
        error,
        tenantId === null
          ? 'The database does not say which deployments wait; it is asked again every second.'
          : `The deployments of tenant ${tenantId} are tried again.`,
      ),
  });
  /** Takes no more deployments, and gives back those that are under way. */
  const leaveDeployments = (): Promise<void> => {
    const givenBack = queue.stop(GIVE_BACK_MS);
    worker.stop();
    return givenBack;
  };
  const indexes = new IndexUpkeep(database, (tenantId, error) =>
    warn(error, `The indexes of ${tenantId === null ? 'the tenants' : `tenant ${tenantId}`} are not up to date.`),
  );
  const operations = new MetadataOperations(platform, {
    queue,
    planning,
    // Made before the first request: one that only reads writes nothing.
    sealingKeys: await sealingKeys(platform, 'cursors of deployments'),
    domains,
  });
  const findUser =
    (ctx: Caller): FindUser =>
    (tenantId, userId) =>
      call(ctx, 'data.users.get', { tenantId, userId });

  return {
    name: 'metadata',
    actions: {
      ...tenantActions(platform, snapshots, { changed, tenantChanged }),
      'components.retrieve': (ctx) => operations.retrieve(requestContext(ctx), ctx.params, findUser(ctx)),
      'components.validate': (ctx) => operations.validate(requestContext(ctx), ctx.params, findUser(ctx)),
      'deployments.create': (ctx) => operations.deploy(requestContext(ctx), ctx.params, findUser(ctx)),
      'deployments.get': (ctx) => operations.get(requestContext(ctx), ctx.params, findUser(ctx)),
      'deployments.cancel': (ctx) => operations.cancel(requestContext(ctx), ctx.params, findUser(ctx)),
      'deployments.list': (ctx) => operations.list(requestContext(ctx), ctx.params, findUser(ctx)),
      'types.list': () => operations.types(),
      'jobs.listDead': async () => ({ jobs: await platform.jobs.deadLetters(DEAD_JOBS_MAX) }),
      'jobs.sendDeadAgain': async ({ params: { queue } }) => ({ sent: await platform.jobs.sendDeadAgain(queue) }),
    } satisfies ActionHandlers<'metadata', MetadataActions>,
    async started() {
      telemetry.register(platform.metrics, database);
      registerTenantNumbers(platform.metrics, database);
      platform.metrics.cache('metadata', 'snapshots', snapshots.numbers);
      const upgraded = await upgradeTenants(database, {
        changed,
        failed: ({ id }, error) => log.error({ err: error, tenantId: id }, NOT_UPGRADED),
      });
      if (upgraded > 0) log.info(`Upgraded the schemas of ${upgraded} tenants.`);
      indexes.start();
      await platform.jobs.declare(NOTICES);
      // At the beginning of a stop, so that another process has them while this one still answers.
      platform.jobs.onLeave(leaveDeployments);
      queue.wake();
      await purgePeriodically(platform);
      await erasePeriodically(database, platform.jobs, {
        eraseContents: async (tenantId) => {
          const { removed } = await call(broker, 'files.tenants.erase', { tenantId });
          return removed + (await call(broker, 'bulk.tenants.erase', { tenantId })).removed;
        },
        erased: (tenantId) => {
          tenantChanged(tenantId);
          log.info({ tenantId }, 'A deleted tenant was erased.');
        },
        failed: (tenantId, error) =>
          warnOf(log, error, 'A deleted tenant was not erased; the next round goes on.', { tenantId }),
        left: (tenantId, remaining) => log.error({ tenantId, remaining }, LEFT),
      });
    },
    async stopped() {
      const givenBack = leaveDeployments();
      await indexes.stop();
      await givenBack;
      await planning.close();
      await leases.close(LEASES_CLOSE_MS);
    },
  };
}
