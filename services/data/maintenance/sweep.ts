/**
 * Removes what a tenant keeps for a while only, after its retention.
 * One process at a time does it; doing it twice does no harm. Source: docs/reference/retention.md.
 */

import type { Database } from '../../../mixins/database/database.ts';
import { removeExpired } from '../trail/chain.ts';
import {
  BATCH_ROWS,
  EXPIRING,
  type Expiring,
  type RemovedEvents,
  removeEventsStatement,
  removeExpiredStatement,
} from './sweep.sql.ts';

/** Rows that a sweep removes. */
export const SWEPT = ['confirmations', 'keys', 'records', 'shares', 'events', 'audit'] as const;
export type Swept = (typeof SWEPT)[number];

export interface SweepResult {
  /** Rows removed of each kind. */
  readonly removed: Readonly<Record<Swept, number>>;
  /** Kinds of which expired rows are left, because the time was up. */
  readonly unfinished: readonly Swept[];
}

/** A tenant with very much to remove does not keep the others waiting; the next round goes on. */
export const TENANT_MS = 30_000;

/** `mayGoOn`: asked before each batch but the first of each kind. */
export async function sweepTenant(database: Database, tenantId: string, mayGoOn: () => boolean): Promise<SweepResult> {
  const removed: Record<Swept, number> = { confirmations: 0, keys: 0, records: 0, shares: 0, events: 0, audit: 0 };
  const unfinished: Swept[] = [];
  const work: Readonly<Record<Swept, Batch>> = {
    confirmations: expired(database, tenantId, EXPIRING.confirmations),
    keys: expired(database, tenantId, EXPIRING.keys),
    records: expired(database, tenantId, EXPIRING.records),
    shares: expired(database, tenantId, EXPIRING.shares),
    events: expiredEvents(database, tenantId),
    audit: () => removeExpired(database, tenantId),
  };
  for (const kind of SWEPT)
    for (;;) {
      const { count, more } = await work[kind]();
      removed[kind] += count;
      if (!more) break;
      if (mayGoOn()) continue;
      unfinished.push(kind);
      break;
    }
  return { removed, unfinished };
}

/** True for so long. */
export const within = (milliseconds: number): (() => boolean) => {
  const end = performance.now() + milliseconds;
  return () => performance.now() < end;
};

/** Removes some expired rows in a transaction of its own. */
type Batch = () => Promise<{ readonly count: number; readonly more: boolean }>;

const expired =
  (database: Database, tenantId: string, rows: Expiring): Batch =>
  async () => {
    const { count } = await database.tenant(tenantId, (tx) =>
      tx.one<{ count: number }>(removeExpiredStatement(tx.schema, rows)),
    );
    return { count, more: count === BATCH_ROWS };
  };

function expiredEvents(database: Database, tenantId: string): Batch {
  let after = 0;
  return async () => {
    const { count, last } = await database.tenant(tenantId, (tx) =>
      tx.one<RemovedEvents>(removeEventsStatement(tx.schema, after)),
    );
    after = last ?? after;
    return { count, more: count === BATCH_ROWS };
  };
}
