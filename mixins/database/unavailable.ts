/**
 * A database that cannot be reached, or that has given a statement up, is not a bug of the request: whatever action met
 * it answers SERVICE_UNAVAILABLE, so that the caller comes again with the same key. Wraps every action of a process.
 */
import type { Middleware } from 'moleculer';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { isConnectionError, isGivenUp, isTimedOut } from './database.ts';
import { statementTimeoutMs } from './use.ts';

/** What a service may have wrapped as unexpected. */
const causeOf = (error: unknown): unknown => {
  if (!(error instanceof PlatformError)) return error;
  return error.code === 'INTERNAL_ERROR' ? error.cause : null;
};

/** What a caller is answered whose statement the database has given up. Called where the statement was sent. */
export const givenUp = (cause: unknown, error = cause): PlatformError =>
  unavailable(
    isTimedOut(cause)
      ? `The query exceeded the time limit of ${statementTimeoutMs() / 1_000} s. Narrow the filter, sort by a field of ` +
          'the record, or ask for fewer fields and records.'
      : 'The database has no room for the query. Try again, or ask for less.',
    error,
  );

function translate(error: unknown): never {
  const cause = causeOf(error);
  if (isConnectionError(cause)) throw unavailable('The database cannot be reached. Try again.', error);
  if (isGivenUp(cause)) throw givenUp(cause, error);
  throw error;
}

const unavailable = (message: string, cause: unknown): PlatformError =>
  new PlatformError('SERVICE_UNAVAILABLE', message, { retryAfterSeconds: 1, cause });

export const databaseUnavailable = {
  name: 'DatabaseUnavailable',
  localAction(next: (ctx: unknown) => Promise<unknown>) {
    return (ctx: unknown) => next(ctx).catch(translate);
  },
} as unknown as Middleware;
