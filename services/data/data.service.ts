import type { Context, ServiceSchema } from 'moleculer';
import { call } from '../../contracts/call.ts';
import { Templates } from '../../mixins/database/templates.ts';
import { NOTICES } from '../../mixins/notices.ts';
import type { Platform } from '../../mixins/platform.ts';
import { sealingKeys } from '../../mixins/sealing-keys.ts';
import { SnapshotCache } from '../../mixins/snapshot-cache/snapshot-cache.ts';
import { compositeActions } from './composite/actions.ts';
import { connectionActions } from './connections/actions.ts';
import { explainActions } from './explain/actions.ts';
import { exportActions } from './export/actions.ts';
import { fileActions } from './files/actions.ts';
import { type DataHandlers, type Handlers, publicHandlers } from './handlers.ts';
import { startPeriodicWork } from './maintenance/periodic.ts';
import { meActions } from './me/actions.ts';
import { OlderSchemas } from './older-schema.ts';
import { readActions } from './read/actions.ts';
import { PreparedReads } from './read/prepared.ts';
import type { ReadDeps } from './read/read.ts';
import { revertActions } from './revert/actions.ts';
import { scimActions } from './scim/actions.ts';
import { shareActions } from './shares/actions.ts';
import { Tenants } from './tenants.ts';
import { trailActions } from './trail/actions.ts';
import { transitionActions } from './transitions/actions.ts';
import { userActions, userEvents } from './users/actions.ts';
import { authLink } from './users/auth-link.ts';
import { writeActions } from './write/actions.ts';
import type { MutationDeps } from './write/write.ts';

/** The Moleculer schema of data: what it is made of. Each area registers its actions in its `actions.ts`. */
export default async function dataService(platform: Platform): Promise<ServiceSchema> {
  const { database, broker, log } = platform;
  const stopping = new AbortController();
  const snapshots = new SnapshotCache((tenantId, version) =>
    call(broker, 'metadata.snapshots.get', version === undefined ? { tenantId } : { tenantId, version }),
  );
  const tenants = new Tenants(database, snapshots);
  const statements = new PreparedReads();
  database.onReplaced(() => tenants.forgetAll());
  const { start, idle, usersChanged, checkUsername } = authLink(platform);
  const readDeps: ReadDeps = {
    database,
    tenants,
    sealingKeys: await sealingKeys(platform, 'cursors of record lists'),
    statements,
    aggregates: { running: 0 },
  };
  const writeDeps: MutationDeps = {
    platform,
    tenants,
    sealingKeys: readDeps.sealingKeys,
    usersChanged,
    checkUsername,
    templates: new Templates(),
  };

  const olderSchemas = new OlderSchemas(database, log);
  const handlers = publicHandlers(readDeps, writeDeps, olderSchemas);

  /** What composite requests may name. */
  const operationActions = (own: Handlers, on: Pick<ReadDeps, 'database' | 'tenants'>) => ({
    ...readActions(own),
    ...writeActions(own, on.database, on.tenants),
    ...transitionActions(own, (question) => call(broker, 'agent.transitions.judge', question)),
    ...shareActions(own),
    ...explainActions(own, on.database, on.tenants),
    ...trailActions(own, on.database, on.tenants, stopping.signal),
  });

  return {
    name: 'data',
    actions: {
      ...operationActions(handlers, readDeps),
      ...exportActions(handlers, platform.blobs),
      ...fileActions(handlers, database, tenants),
      ...compositeActions(handlers, readDeps, writeDeps, operationActions),
      ...scimActions(handlers, { read: readDeps, write: writeDeps }),
      ...userActions(handlers, database, tenants, broker),
      ...meActions(handlers, writeDeps),
      ...connectionActions(database, tenants, log),
      ...revertActions(handlers, {
        ...writeDeps,
        runState: (tenantId, runId) => call(broker, 'agent.runs.state', { tenantId, runId }),
      }),
    } satisfies DataHandlers,
    // Actions of other services and of operators name their tenant; the public ones have explained their errors before.
    hooks: {
      error: {
        '*': async (ctx: Context<{ tenantId?: unknown } | undefined>, error: Error) => {
          const tenantId = ctx.params?.tenantId;
          throw typeof tenantId === 'string' ? await olderSchemas.explain(tenantId, error) : error;
        },
      },
    },
    events: userEvents(database, log),
    created() {
      const { metrics } = platform;
      metrics.cache('data', 'snapshots', snapshots.numbers);
      metrics.cache('data', 'tenants', tenants.numbers);
      metrics.cache('data', 'lists', statements.lists);
      metrics.cache('data', 'gets', statements.gets);
    },
    async started() {
      await start();
      await platform.jobs.declare(NOTICES);
      await startPeriodicWork(platform, usersChanged, olderSchemas);
    },
    async stopped() {
      stopping.abort();
      await idle();
    },
  };
}
