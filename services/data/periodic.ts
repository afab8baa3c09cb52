/** Work on every tenant that comes round again and again, in one process at a time. Doing it twice does no harm. */
import type { TenantInfo } from '../../lib/schema/snapshot.ts';
import type { Database } from '../../mixins/database/database.ts';

/** True for the one process that does the work that is due; the next time is due after `everySeconds`. */
export async function claimSweep(
  database: Database,
  name: 'tenants' | 'audit',
  everySeconds: number,
): Promise<boolean> {
  const { rowCount } = await database.query(
    `INSERT INTO data.sweeps (name, due_at) VALUES ($1, now() + make_interval(secs => $2))
      ON CONFLICT (name) DO UPDATE SET due_at = excluded.due_at WHERE sweeps.due_at <= now()`,
    [name, everySeconds],
  );
  return rowCount === 1;
}

export interface PeriodicWork {
  readonly name: 'tenants' | 'audit';
  /** How often it is due. */
  readonly everySeconds: number;
  /** How often this process asks whether it is. */
  readonly askedEveryMs: number;
  readonly work: (tenantId: string) => Promise<unknown>;
  /** The next tenants by id. */
  readonly tenants: (after: string | undefined) => Promise<readonly Pick<TenantInfo, 'id'>[]>;
  /** tenantId null: the round as a whole did not end. */
  readonly failed: (tenantId: string | null, error: unknown) => void;
}

/** Starts the work in this process; it is done by whichever process finds it due. Answers how to stop it. */
export function startPeriodic(database: Database, periodic: PeriodicWork, firstAfterMs: number): () => void {
  let stopped = false;
  let timer: NodeJS.Timeout;
  const round = async (): Promise<void> => {
    try {
      if (await claimSweep(database, periodic.name, periodic.everySeconds)) await forAll(periodic, () => stopped);
    } catch (error) {
      periodic.failed(null, error);
    }
    if (!stopped) timer = setTimeout(round, periodic.askedEveryMs).unref();
  };
  timer = setTimeout(round, firstAfterMs).unref();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

/** All tenants, one after the other; a tenant that fails is left for the next time. */
async function forAll({ tenants, work, failed }: PeriodicWork, stopped: () => boolean): Promise<void> {
  let after: string | undefined;
  for (;;) {
    const page = await tenants(after);
    for (const { id } of page) {
      if (stopped()) return;
      await work(id).catch((error) => failed(id, error));
    }
    if (page.length === 0) return;
    after = page.at(-1)!.id;
  }
}
