/**
 * What ends by itself: idempotency keys after their retention, deleted records that nobody restored. And what a crash
 * left undone: users that auth has not heard of. One process at a time takes it on; doing it twice does no harm.
 */

import type { TenantInfo } from '../../lib/snapshot/types.ts';
import type { Database } from '../../mixins/database/database.ts';
import { removeExpired } from './trail/chain.ts';
import { sendUnsentUsers, type UserSync } from './users/sync.ts';

export interface SweepResult {
  confirmations: number;
  keys: number;
  records: number;
  shares: number;
  users: number;
  audit: number;
}

/** Rows deleted in one statement, so that a sweep never holds many locks. */
const BATCH = 5_000;

export async function sweepTenant(database: Database, tenantId: string, sync: UserSync): Promise<SweepResult> {
  const deleteExpired = (table: string, key: string, column: string, also: (schema: string) => string = () => '') =>
    database.tenant(tenantId, async (tx) => {
      let deleted = 0;
      for (;;) {
        const { rows } = await tx.query<{ count: number }>(
          `WITH gone AS (DELETE FROM ${tx.schema}.${table} WHERE (${key}) IN (SELECT ${key} FROM ${tx.schema}.${table} WHERE ${column} < now() LIMIT ${BATCH} FOR UPDATE SKIP LOCKED) RETURNING ${key})
          ${also(tx.schema)} SELECT count(*)::int AS count FROM gone`,
        );
        deleted += rows[0]!.count;
        if (rows[0]!.count < BATCH) return deleted;
      }
    });
  return {
    confirmations: await deleteExpired('_confirmations', 'confirmation_id', 'expires_at'),
    keys: await deleteExpired('_idempotency', 'client_id, user_id, key', 'expires_at'),
    records: await deleteExpired('_recycle_bin', 'object, record_id', 'restorable_until', sharesOfGone),
    shares: await deleteExpired('_revoked_shares', 'share_id', 'kept_until'),
    users: await sendUnsentUsers(database, tenantId, sync),
    audit: await removeExpired(database, tenantId),
  };
}

/** A record takes its shares along when it goes for good. */
const sharesOfGone = (schema: string): string =>
  `, shares AS (DELETE FROM ${schema}._shares s USING gone WHERE s.record_id = gone.record_id AND s.object = gone.object)`;

/** True for the one process that does the sweep that is due; the next one is due after `everySeconds`. */
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

/** Work on every tenant that comes round again and again. */
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
