/** Periodic work on every tenant, one after the other, by one process at a time. Doing it twice does no harm. */
import type { Jobs } from './jobs.ts';
import type { PeriodicQueue } from './queue.ts';

interface TenantRounds {
  readonly queue: PeriodicQueue;
  readonly work: (tenantId: string, signal: AbortSignal) => Promise<unknown>;
  /** The next tenants by id. */
  readonly tenants: (
    after: string | undefined,
  ) => Promise<readonly { readonly id: string; readonly suspended: boolean }[]>;
  /** The work is done for suspended tenants as well. What removes something for good waits until they are resumed. */
  readonly alsoSuspended: boolean;
  /** The work on a tenant failed; it is left for the next round. */
  readonly failed: (tenantId: string, error: unknown) => void;
}

export const repeatForTenants = (jobs: Jobs, rounds: TenantRounds): Promise<void> =>
  jobs.repeat(rounds.queue, (signal) => {
    const failed: TenantRounds['failed'] = (tenantId, error) => {
      jobs.noteTenantFailure(rounds.queue);
      rounds.failed(tenantId, error);
    };
    return forAll({ ...rounds, failed }, signal);
  });

async function forAll({ tenants, alsoSuspended, work, failed }: TenantRounds, signal: AbortSignal): Promise<void> {
  let after: string | undefined;
  for (;;) {
    if (signal.aborted) return;
    const page = await tenants(after);
    for (const { id, suspended } of page) {
      if (signal.aborted) return;
      if (alsoSuspended || !suspended) await work(id, signal).catch((error: unknown) => failed(id, error));
      after = id;
    }
    if (page.length === 0) return;
  }
}
