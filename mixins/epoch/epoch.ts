/**
 * The epoch of a tenant: positions in its audit trail mean something within one epoch. A position is a snapshot of
 * transactions, and in a copy of the database (restored from a dump, recovered to a point in time, a replica that took
 * over) the numbers of transactions may stand for others. Readers of the trail by positions find out here whether
 * the database is still the one that the epoch was made for, and begins a new one if it is not.
 * Source: docs/decisions/epochs.md.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { type Database, sqlState } from '../database/database.ts';
import { type EpochRow, epochStatement, RENEWAL_LIMITS, renewEpochStatement } from './epoch.sql.ts';

export interface Epoch {
  readonly epoch: string;
  /** The reader's snapshot, in the numbers of the columns `tx`. */
  readonly snapshot: string;
}

/** The database is not the one that the epoch was made for. */
class EpochPassed extends Error {
  readonly seen: string;
  readonly here: string;

  constructor(seen: string, here: string) {
    super('The database is a copy of the one that the epoch was made for.');
    this.seen = seen;
    this.here = here;
  }
}

function partsOf(snapshot: string): [begin: string, end: string, running: string] {
  const [begin, end, running = ''] = snapshot.split(':');
  if (begin === undefined || end === undefined) throw new Error(`Assertion failed: ${snapshot} is a snapshot`);
  return [begin, end, running];
}

/** The end of a snapshot `xmin:xmax:running`: what begins later has this number or a higher one. */
const endOf = (snapshot: string): bigint => BigInt(partsOf(snapshot)[1]);

/** A snapshot with `offset` added to all of its numbers. */
export function shifted(snapshot: string, offset: bigint): string {
  if (offset === 0n) return snapshot;
  const [begin, end, running] = partsOf(snapshot);
  const add = (number: string): string => String(BigInt(number) + offset);
  return `${add(begin)}:${add(end)}:${running === '' ? '' : running.split(',').map(add).join()}`;
}

/**
 * Detects that the database is a copy: it is in another place, or there is something in it, or in what
 * was seen of it, that lies in its future.
 */
export function hasPassed(row: EpochRow, ...seen: (string | null)[]): boolean {
  const { place, here, lastTx, serverSnapshot, txOffset } = row;
  if (here === null) return false;
  const end = endOf(serverSnapshot) + BigInt(txOffset);
  return here !== place || BigInt(lastTx) >= end || seen.some((snapshot) => snapshot !== null && endOf(snapshot) > end);
}

/** Throws within `inEpoch` when the epoch must be renewed, or cannot be known. */
export function requireEpoch(row: EpochRow, passed = hasPassed(row)): void {
  if (row.here === null) throw replicaError();
  if (passed) throw new EpochPassed(row.epoch, row.here);
}

/** The epoch as a statement saw it. `seen`: snapshots of the past. Throws within `inEpoch` when it must be renewed. */
export function epochOf(row: EpochRow, ...seen: (string | null)[]): Epoch {
  requireEpoch(row, hasPassed(row, ...seen));
  return { epoch: row.epoch, snapshot: shifted(row.serverSnapshot, BigInt(row.txOffset)) };
}

/** It cannot know which timeline it will be on. */
export const replicaError = (): PlatformError =>
  new PlatformError('SERVICE_UNAVAILABLE', 'The database is a replica, which cannot serve the change feed.', {
    retryAfterSeconds: 5,
  });

/** Renewals of one request. A database that is not at rest after these is being restored. */
const RENEWALS_MAX = 3;

/** Runs `work`, once more after a renewal when it finds that the epoch has passed. */
export async function inEpoch<T>(database: Database, tenantId: string, work: () => Promise<T>): Promise<T> {
  for (let renewals = 0; ; renewals++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof EpochPassed)) throw error;
      if (renewals === RENEWALS_MAX) throw beingRestored();
      await renewEpoch(database, tenantId, error.seen, error.here);
    }
  }
}

/** The epoch as it is now, for other services. */
export const epochOfTenant = (database: Database, tenantId: string): Promise<Pick<Epoch, 'epoch'>> =>
  inEpoch(database, tenantId, () =>
    database.tenant(tenantId, async (tx) => {
      const { epoch } = epochOf(await tx.one<EpochRow>(epochStatement(tx.schema)));
      return { epoch };
    }),
  );

const LOCK_TIMEOUT = '55P03';
const LOCK_ATTEMPTS = 6;
const LOCK_PAUSE_MS = 200;

/**
 * Begins a new epoch in place of `seen`; false: another process has done so. Waits for changes that are in flight, not
 * for long at a time.
 */
export async function renewEpoch(database: Database, tenantId: string, seen: string, here: string): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await database.tenantTransaction(tenantId, async (tx) => {
        const limited = tx.query(RENEWAL_LIMITS);
        const { renewed } = await tx.one<{ renewed: boolean }>(renewEpochStatement(tx.schema, seen, here));
        await limited;
        return renewed;
      });
    } catch (error) {
      if (sqlState(error) !== LOCK_TIMEOUT) throw error;
      if (attempt === LOCK_ATTEMPTS) throw beingRestored();
      await pause(LOCK_PAUSE_MS * attempt * Math.random());
    }
  }
}

const beingRestored = (): PlatformError =>
  new PlatformError(
    'SERVICE_UNAVAILABLE',
    'The database was restored, and the change feed is not available yet; try again.',
    {
      retryAfterSeconds: 2,
    },
  );
