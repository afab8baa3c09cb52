/** Why a run lets nothing through. */
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { LockedRun } from './run.sql.ts';

export const runNotFound = (): PlatformError => new PlatformError('RUN_NOT_FOUND', 'There is no such run.');

/** 409 for a run that has ended; null while it is active. */
export function endedRefusal({ status, live }: Pick<LockedRun, 'status' | 'live'>): PlatformError | null {
  if (status === 'RUNNING' && live) return null;
  const ended = status === 'RUNNING' ? 'EXPIRED' : status;
  return new PlatformError('RUN_NOT_ACTIVE', `The run has ended: ${ended}.`, { details: { status: ended } });
}
