/** Database errors of a mutation: whether to retry, and the caller's error. */
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { isConnectionError, sqlState } from '../database/database.ts';
import { failureOf } from '../database/failures.ts';
import { unavailableOf } from '../database/unavailable.ts';
import { isServiceUnavailable, serviceUnavailable } from '../service-unavailable.ts';
import { keyInProgress } from './key.ts';

const LOCK_TIMEOUT = '55P03';
const SERIALIZATION_FAILURE = '40001';
const DEADLOCK = '40P01';

/** A text attribute that PostgreSQL gives an error, such as `where` or `constraint`. */
export function errorAttribute(error: unknown, name: 'where' | 'constraint' | 'column' | 'table'): string | undefined {
  const value: unknown = error instanceof Error ? Reflect.get(error, name) : undefined;
  return typeof value === 'string' ? value : undefined;
}

export const isLockTimeout = (error: unknown): boolean => sqlState(error) === LOCK_TIMEOUT;

/** The same key may be tried again at once: nothing was committed, or the key says what was. */
export const isTransient = (error: unknown): boolean =>
  sqlState(error) === SERIALIZATION_FAILURE || sqlState(error) === DEADLOCK || isConnectionError(error);

/** The mutation timed out waiting for the row that a deployment locks until it is done. */
export const waitedForDeployment = (error: unknown): boolean =>
  isLockTimeout(error) && errorAttribute(error, 'where')?.includes('"_state"') === true;

/**
 * The mutation timed out waiting for something other than a row: a deployment locks the table, or a concurrent request
 * holds a value. A second attempt looks at the row of deployments first, which shows which of them it is.
 */
export const waitedForTableOrValue = (error: unknown): boolean =>
  isLockTimeout(error) && errorAttribute(error, 'where')?.includes(' tuple ') !== true;

/** The mutation timed out waiting for another one: for a row, a key or a unique value. */
export const waitedForWriter = (error: unknown): boolean =>
  isLockTimeout(error) && !waitedForDeployment(error) && !waitedForTableOrValue(error);

/**
 * The catalogue error that a failed mutation answers with. `ofService` maps the driver errors that only the service can
 * explain, such as a violated constraint of its own tables.
 */
export function platformErrorOf(
  error: unknown,
  ofService: ((error: unknown) => PlatformError | null) | undefined,
): PlatformError {
  if (error instanceof PlatformError) return error;
  const failed = failureOf(error)?.kind === 'contended' ? null : unavailableOf(error);
  if (failed) return failed;
  if (isLockTimeout(error) && errorAttribute(error, 'where')?.includes('"_idempotency') === true)
    return keyInProgress();
  if (isServiceUnavailable(error)) return serviceUnavailable(error);
  const state = sqlState(error);
  if (state === LOCK_TIMEOUT || state === SERIALIZATION_FAILURE || state === DEADLOCK)
    return new PlatformError('WRITE_CONTENTION', 'Other requests keep changing the same data; try again.', {
      retryAfterSeconds: 1,
      cause: error,
    });
  return (
    ofService?.(error) ??
    new PlatformError('INTERNAL_ERROR', 'The request could not be completed; the same key may be sent again.', {
      cause: error,
    })
  );
}
