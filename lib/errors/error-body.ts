/** The body of every error that callers see. Source: docs/reference/errors.md. */
import { errorUrl } from '../addresses.ts';
import type { ErrorCode } from './catalogue.ts';
import type { PlatformError, Violation } from './platform-error.ts';
import { VIOLATIONS_MAX } from './violation-list.ts';

export interface ErrorBody {
  readonly code: ErrorCode;
  readonly message: string;
  readonly status: number;
  readonly requestId: string;
  /** URL of the code's documentation. */
  readonly type: string;
  readonly retryable: boolean;
  readonly retryAfterSeconds?: number;
  readonly errors?: readonly Violation[];
  readonly details?: Readonly<Record<string, unknown>>;
}

export function errorBody(error: PlatformError, requestId: string, baseUrl: string): ErrorBody {
  const { code, message, status, retryable, retryAfterSeconds, errors, details } = error;
  return {
    code,
    message,
    status,
    requestId,
    type: errorUrl(code, baseUrl),
    retryable,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(errors && errors.length > 0 ? { errors: errors.slice(0, VIOLATIONS_MAX) } : {}),
    ...(details ? { details } : {}),
  };
}
