/**
 * A request and its answer for every operation, as the platform with the demo tenants answered it: recorded by
 * `npm run examples`, never written by hand. Source: docs/reference/assistant-manifest.md.
 */
import { errorUrl } from '../lib/addresses.ts';
import { CATALOGUE, type ErrorCode, isErrorCode, isRetryable, saysWhenToRetry } from '../lib/errors/catalogue.ts';
import { isObject } from '../lib/json/objects.ts';
import agent from './examples/agent.json' with { type: 'json' };
import analytics from './examples/analytics.json' with { type: 'json' };
import auth from './examples/auth.json' with { type: 'json' };
import bulk from './examples/bulk.json' with { type: 'json' };
import calendar from './examples/calendar.json' with { type: 'json' };
import data from './examples/data.json' with { type: 'json' };
import events from './examples/events.json' with { type: 'json' };
import files from './examples/files.json' with { type: 'json' };
import gateway from './examples/gateway.json' with { type: 'json' };
import metadata from './examples/metadata.json' with { type: 'json' };
import notifications from './examples/notifications.json' with { type: 'json' };
import ratelimit from './examples/ratelimit.json' with { type: 'json' };
import type { OperationId } from './operations.ts';

export interface Exchange {
  readonly request: {
    readonly method: string;
    /** With the values of its parameters, percent-encoded; below the address of the API. */
    readonly path: string;
    /** Parameters as they are before they are encoded. */
    readonly query?: Readonly<Record<string, string>>;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: unknown;
  };
  readonly response: {
    readonly status: number;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: unknown;
  };
  /** Parts left out of the answer's body: of a list or mapping so many entries, of a text so many characters. */
  readonly shortened?: readonly { readonly pointer: string; readonly kept: number; readonly of: number }[];
}

export interface RecordedExample extends Exchange {
  /** Refusals that a careful client meets all the same. */
  readonly errors?: Readonly<Partial<Record<ErrorCode, Exchange>>>;
}

type RecordedExamples = Readonly<Partial<Record<OperationId, RecordedExample>>>;

/** By operation, from one file for each service. */
export const EXAMPLES: RecordedExamples = {
  ...gateway,
  ...auth,
  ...bulk,
  ...calendar,
  ...ratelimit,
  ...data,
  ...analytics,
  ...metadata,
  ...agent,
  ...files,
  ...events,
  ...notifications,
};

/** Bodies of the errors that were recorded with an operation, one for each code. */
const RECORDED_ERRORS: ReadonlyMap<ErrorCode, object> = new Map(
  Object.values(EXAMPLES).flatMap(({ errors = {} }) =>
    Object.entries(errors).flatMap(([code, { response }]) =>
      isErrorCode(code) && isObject(response.body) ? [[code, response.body] as const] : [],
    ),
  ),
);

/** The body of an error at `baseUrl`: as it was recorded, or with what every error of the code has. */
export function errorExample(code: ErrorCode, baseUrl: string): object {
  const { status, title } = CATALOGUE[code];
  const type = errorUrl(code, baseUrl);
  const general = {
    code,
    message: `${title}.`,
    status,
    requestId: 'req_01JD9Z8Q4M7T2V5K6N8P0R3S1W',
    type,
    retryable: isRetryable(code),
    ...(saysWhenToRetry(code) ? { retryAfterSeconds: 1 } : {}),
  };
  return { ...(RECORDED_ERRORS.get(code) ?? general), type };
}
