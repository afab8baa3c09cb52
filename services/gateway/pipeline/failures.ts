/** Errors to answers: what is expected passes, everything else is logged and answered without detail. */
import { API_PREFIX } from '../../../lib/addresses.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isServiceUnavailable, serviceUnavailable } from '../../../mixins/service-unavailable.ts';

/** The request took longer than the platform allows. */
export class TimeLimit extends Error {
  override readonly name = 'TimeLimit';
}

export const pageNotFound = (): PlatformError =>
  new PlatformError('ROUTE_NOT_FOUND', `There is no page at this path; the API is below ${API_PREFIX}.`);

/** Pages are read, and take nothing. */
export const methodNotAllowed = (): PlatformError =>
  new PlatformError('METHOD_NOT_ALLOWED', 'The request method is not supported for this path.', {
    headers: { Allow: 'GET, HEAD' },
  });

/** Every error as one of the catalogue; `unexpected` ones belong into the log with their stack. */
export function toPlatformError(error: unknown): { error: PlatformError; unexpected: boolean } {
  if (error instanceof PlatformError) return { error, unexpected: error.code === 'INTERNAL_ERROR' };
  if (isServiceUnavailable(error)) return { error: serviceUnavailable(error), unexpected: false };
  const message =
    error instanceof TimeLimit
      ? 'The request took too long. The same key and body may be sent again.'
      : 'The request failed. The same key and body may be sent again.';
  return { error: new PlatformError('INTERNAL_ERROR', message, { cause: error }), unexpected: true };
}
