/** One request of an assistant: what it says, and how operations are run for its sender. */
import type { McpDoorActions, McpOutcome, McpRequest } from '../../contracts/mcp.ts';
import { type ErrorBody, errorBody } from '../../lib/errors/error-body.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { isServiceUnavailable, readingUnavailable } from '../../mixins/service-unavailable.ts';

export interface McpCall {
  readonly request: McpRequest;
  /** Runs an operation in the name of the caller, through all checks of the API. */
  run(asked: Omit<McpDoorActions['gateway.operations.run']['params'], 'ticket'>): Promise<McpOutcome>;
  /** Told what failed unexpectedly; the caller hears no details of it. */
  onError(error: unknown): void;
}

/** The caller's error for a thrown one. */
export function errorOf({ request, onError }: McpCall, thrown: unknown): ErrorBody {
  return errorBody(known(thrown, onError), request.requestId, request.baseUrl);
}

function known(thrown: unknown, onError: McpCall['onError']): PlatformError {
  if (thrown instanceof PlatformError) return thrown;
  if (isServiceUnavailable(thrown)) return readingUnavailable(thrown);
  onError(thrown);
  return new PlatformError('INTERNAL_ERROR', 'The request failed.');
}
