/**
 * A database that cannot be reached is not a bug of the request: whatever action met it answers SERVICE_UNAVAILABLE, so
 * that the caller comes again with the same key. Wraps every action of a process.
 */
import type { Middleware } from 'moleculer';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { isConnectionError } from './database.ts';

/** The lost connection behind an error, which a service may have wrapped as unexpected. */
const isDatabaseAway = (error: unknown): boolean =>
  error instanceof PlatformError
    ? error.code === 'INTERNAL_ERROR' && isConnectionError(error.cause)
    : isConnectionError(error);

function translate(error: unknown): never {
  if (!isDatabaseAway(error)) throw error;
  throw new PlatformError('SERVICE_UNAVAILABLE', 'The database cannot be reached. Try again.', {
    retryAfterSeconds: 1,
    cause: error,
  });
}

export const databaseUnavailable = {
  name: 'DatabaseUnavailable',
  localAction(next: (ctx: unknown) => Promise<unknown>) {
    return (ctx: unknown) => next(ctx).catch(translate);
  },
} as unknown as Middleware;
