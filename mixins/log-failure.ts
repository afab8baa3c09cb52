/** Why a request has failed, for the log: the caller gets the code and the request id. */
import type { ServiceBroker } from 'moleculer';
import { PlatformError } from '../lib/errors/platform-error.ts';
import { failureOf } from './database/failures.ts';

/** At level `error` what is a bug, at `warn` what the database could not do, at `info` what passes (a lock, a conflict). */
export function logFailure(log: ServiceBroker['logger'], name: string, requestId: string, error: unknown): void {
  const known = error instanceof PlatformError;
  const cause = known ? error.cause : error;
  if (cause === undefined) return;
  const fields = { err: cause, requestId, ...(known ? { code: error.code } : {}) };
  const message = `${name} failed.`;
  if (known && error.status < 500) log.info(fields, message);
  else if ((known && error.code === 'SERVICE_UNAVAILABLE') || failureOf(cause)) log.warn(fields, message);
  else log.error(fields, message);
}
