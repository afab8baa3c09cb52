/** Failures that end by themselves, because the database or another service is away: answered with 503, not 500. */
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { failureOf } from '../../mixins/database/failures.ts';
import { isServiceUnavailable } from '../../mixins/service-unavailable.ts';

export const isUnavailable = (error: unknown): boolean =>
  failureOf(error) !== null ||
  (error instanceof PlatformError && error.code === 'SERVICE_UNAVAILABLE') ||
  isServiceUnavailable(error);
