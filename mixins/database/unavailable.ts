/**
 * A database that fails is not a bug of the request: whatever action met it answers SERVICE_UNAVAILABLE, so that the
 * caller comes again with the same key. Wraps every action of a process.
 */
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { middleware } from '../moleculer.ts';
import { type FailureKind, failureOf } from './failures.ts';
import { statementTimeoutMs } from './use.ts';

const RETRY_AFTER_SECONDS: Readonly<Partial<Record<FailureKind, number>>> = { readOnly: 5, full: 10, damaged: 10 };

/** The caller's error. Built at the place of the statement, because the time limit depends on the request. */
function messageOf(kind: FailureKind): string {
  switch (kind) {
    case 'timedOut':
      return (
        `The query exceeded the time limit of ${statementTimeoutMs() / 1_000} s. Narrow the filter, sort by a field of ` +
        'the record, or ask for fewer fields and records.'
      );
    case 'outOfMemory':
      return 'The database has no room for the query. Try again, or ask for less.';
    case 'full':
      return 'The database has no space left for changes. Nothing was changed; try again later.';
    case 'readOnly':
      return 'The database accepts no changes at the moment. Nothing was changed; try again later.';
    case 'contended':
      return 'Other work keeps the data locked. Try again.';
    case 'damaged':
      return 'The database cannot read or write its files. Try again later.';
    default:
      return 'The database cannot be reached. Try again.';
  }
}

/** The caller's error for a failure of the database; null: it was not the database. */
export function unavailableOf(error: unknown, cause = error): PlatformError | null {
  const failure = failureOf(error);
  if (!failure) return null;
  const retryAfterSeconds = RETRY_AFTER_SECONDS[failure.kind] ?? 1;
  return new PlatformError('SERVICE_UNAVAILABLE', messageOf(failure.kind), { retryAfterSeconds, cause });
}

/** The cause that a service may have wrapped as unexpected. */
const causeOf = (error: unknown): unknown => {
  if (!(error instanceof PlatformError)) return error;
  return error.code === 'INTERNAL_ERROR' ? error.cause : null;
};

function translate(error: unknown): never {
  throw unavailableOf(causeOf(error), error) ?? error;
}

export const databaseUnavailable = middleware({
  name: 'DatabaseUnavailable',
  localAction(next: (ctx: unknown) => Promise<unknown>) {
    return (ctx: unknown) => next(ctx).catch(translate);
  },
});
