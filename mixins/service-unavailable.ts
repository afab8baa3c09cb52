/** Calls to other services that found nobody, or got no answer in time. */
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

/** The process that had the call was lost, and no other one could repeat it. */
const LOST =
  'The process that handled the request was lost, and whether it was carried out is not known. With the same idempotency key it may be sent again.';

export function serviceUnavailable(cause: unknown): PlatformError {
  const lost = cause instanceof Error && 'type' in cause && cause.type === 'REQUEST_REJECTED';
  const message = lost ? LOST : 'A required service is not available. Try again.';
  return new PlatformError('SERVICE_UNAVAILABLE', message, { retryAfterSeconds: 1, cause });
}
