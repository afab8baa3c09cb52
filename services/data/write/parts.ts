/** Parts of a transaction that may fail without the others. */

import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { isConnectionError, type Tx } from '../../../mixins/database/database.ts';
import { logFailure } from '../../../mixins/log-failure.ts';
import { isTransient, platformErrorOf, waitedForDeployment } from '../../../mixins/mutation/errors.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import { isStale } from '../tenants.ts';
import type { View } from '../view.ts';
import { recordError } from './constraint-errors.ts';
import { withAllConflicts } from './unique.ts';
import type { MutationCall, MutationDeps, Write } from './write.ts';

/** The same dependencies for work within a transaction: what asks the database asks it on this connection. */
export function within(deps: MutationDeps, tx: Tx): MutationDeps {
  const database = Object.create(deps.platform.database, {
    tenant: { value: (_tenantId: string, work: (tx: Tx) => unknown) => work(tx) },
  });
  return { ...deps, platform: Object.create(deps.platform, { database: { value: database } }) };
}

/** Runs a part of the transaction; when it fails, nothing of it remains. */
export async function inSavepoint<T>({ tx, effects }: Unit, work: () => Promise<T>): Promise<T> {
  const noted = effects.length;
  tx.gather();
  void tx.query('SAVEPOINT part');
  try {
    const result = await work();
    // Nothing runs behind rows that were not read: with them the transaction is over.
    if (tx.isAbandoned)
      throw new PlatformError('REQUEST_TOO_LARGE', 'A part has read more than fits: ask for less.', {
        details: { maxBytes: LIMITS.page_max_bytes },
      });
    void tx.query('RELEASE SAVEPOINT part');
    return result;
  } catch (error) {
    effects.length = noted;
    if (!isConnectionError(error) && !tx.isAbandoned) await tx.query('ROLLBACK TO SAVEPOINT part');
    throw error;
  }
}

/** What failed is not the part: the whole transaction is to be repeated, or is gone. */
export const endsTransaction = (error: unknown): boolean =>
  isConnectionError(error) || isTransient(error) || isStale(error) || waitedForDeployment(error);

/**
 * Why a part was refused, once it is rolled back. Throws what ends the whole transaction: it is to be repeated, or cannot
 * go on.
 */
export async function refusalOf(
  { platform: { database, log } }: MutationDeps,
  view: View,
  call: MutationCall,
  write: Write | null,
  error: unknown,
): Promise<PlatformError> {
  if (endsTransaction(error)) throw error;
  const all = await withAllConflicts(database, write, error);
  const refusal = platformErrorOf(all, (one) => recordError(view, call, one));
  if (refusal.status === 503) throw error;
  // The caller is told of the part alone, and nobody else would hear of a bug.
  if (refusal.code === 'INTERNAL_ERROR') logFailure(log, call.operationId, null, error);
  return refusal;
}
