/**
 * A database that cannot be reached, or that takes too long, is not a bug of the request: whatever action met it answers
 * SERVICE_UNAVAILABLE, so that the caller comes again with the same key. Wraps every action of a process.
 */
import type { Middleware } from 'moleculer';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { isConnectionError, isGivenUp } from './database.ts';

export const GIVEN_UP = 'The request takes the database too long. Try again, or ask for less.';

/** What a service may have wrapped as unexpected. */
const causeOf = (error: unknown): unknown => {
  if (!(error instanceof PlatformError)) return error;
  return error.code === 'INTERNAL_ERROR' ? error.cause : null;
};

function translate(error: unknown): never {
  const cause = causeOf(error);
  if (isConnectionError(cause)) throw unavailable('The database cannot be reached. Try again.', error);
  if (isGivenUp(cause)) throw unavailable(GIVEN_UP, error);
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
