/** Calls to other services that found no provider, or got no answer in time. */
import { PlatformError } from '../lib/errors/platform-error.ts';

const UNAVAILABLE = new Set([
  'SERVICE_NOT_FOUND',
  'SERVICE_NOT_AVAILABLE',
  'REQUEST_TIMEOUT',
  'REQUEST_REJECTED',
  'QUEUE_FULL',
  'BAD_GATEWAY',
  'CLOCKS_DIFFER',
]);
const UNAVAILABLE_NAMES = new Set([
  'ServiceNotFoundError',
  'ServiceNotAvailableError',
  'RequestTimeoutError',
  'RequestRejectedError',
  'RequestSkippedError',
  'QueueIsFullError',
  'BrokerDisconnectedError',
]);

/** True for an error of the broker: the service that was called could not answer. */
export function isServiceUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return UNAVAILABLE_NAMES.has(error.name) || ('type' in error && UNAVAILABLE.has(String(error.type)));
}

const NOT_AVAILABLE = 'A required service is not available. Try again.';
/** The process that had the call was lost, and no other one could repeat it. */
const LOST =
  'The process that handled the request was lost, and whether it was carried out is not known. With the same idempotency key it may be sent again.';

/** The answer to a request that may have changed something. */
export function serviceUnavailable(cause: unknown): PlatformError {
  const lost = cause instanceof Error && 'type' in cause && cause.type === 'REQUEST_REJECTED';
  return unavailable(cause, lost ? LOST : NOT_AVAILABLE);
}

/** The answer to a request that only reads: it may be sent again in any case. */
export const readingUnavailable = (cause: unknown): PlatformError => unavailable(cause, NOT_AVAILABLE);

const unavailable = (cause: unknown, message: string): PlatformError =>
  new PlatformError('SERVICE_UNAVAILABLE', message, { retryAfterSeconds: 1, cause });
