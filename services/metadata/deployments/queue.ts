/**
 * The queue of deployments is their table: each process looks for tenants whose first open deployment is unclaimed, and
 * works on a few of them at a time. So whatever becomes of a worker, its process or the database, the next look finds
 * what is left. Source: docs/decisions/tables-as-queues.md.
 */
import { LEASE_CONNECTIONS } from '../../../config/services.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { WorkLoop } from '../../../mixins/jobs/work-loop.ts';
import { dueTenantsStatement } from './queue.sql.ts';

/** How often a process looks, about: what another one has accepted or lost is taken so soon. */
const LOOK_MS = 1_000;
/**
 * Deployments that one process works on at a time. Each has a connection for its lease and the looks have one, so that a
 * renewal waits for nothing else: not for a slow look, nor for the row of another deployment that is about to commit.
 */
const CONCURRENCY = LEASE_CONNECTIONS - 1;

interface DeploymentQueueOptions {
  /** Works on the first open deployment of a tenant; false: another worker has it. */
  readonly run: (tenantId: string) => Promise<boolean>;
  /** A look or a run failed; it is tried again. `tenantId` null: of a look. */
  readonly failed: (error: unknown, tenantId: string | null) => void;
}

/** `wake`: after the commit that accepted a deployment. */
export const deploymentQueue = (database: Database, { run, failed }: DeploymentQueueOptions): WorkLoop<string> =>
  new WorkLoop<string>({
    label: 'metadata.deployments',
    lookMs: LOOK_MS,
    concurrency: CONCURRENCY,
    due: async (take, left) => {
      const due = await database.login((tx) => tx.all<{ tenantId: string }>(dueTenantsStatement(left, take)));
      return due.map(({ tenantId }) => tenantId);
    },
    keyOf: (tenantId) => tenantId,
    run: async (tenantId) => ((await run(tenantId)) ? 'done' : 'busy'),
    failed,
  });
