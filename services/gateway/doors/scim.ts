/**
 * The door for provisioning: a request below /scim/v2 passes the checks of an operation and is handed to data, which
 * answers in the form of SCIM. Source: docs/reference/scim.md.
 */
import { hash } from 'node:crypto';
import { LIMITS } from '../../../config/limits.ts';
import { SCIM_MEDIA_TYPE, SCIM_PREFIX, SCIM_ROUTES, type ScimCall } from '../../../contracts/scim.ts';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError, type Violation } from '../../../lib/errors/platform-error.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { mark } from '../../../mixins/watchdog/work.ts';
import type { Exchange } from '../edge/exchange.ts';
import { checkMediaType, hasBody, readBytes } from '../edge/intake.ts';
import { commonHeaders, errorHeaders, type ReplyOptions, send } from '../edge/reply.ts';
import { decode } from '../pipeline/form.ts';
import { admitProvisioning, type Gate } from '../pipeline/index.ts';
import { allowed, Router } from '../pipeline/router.ts';

/** What the door uses of its gateway. */
interface GatewayParts {
  readonly baseUrl: string;
  replyOptions(): ReplyOptions;
  /** Calls data for the caller, who pays for what it takes beyond the price. */
  provision(x: Exchange, asked: ScimCall): Promise<OperationReply>;
}

const router = new Router(SCIM_ROUTES);

export async function answerProvisioning(gateway: GatewayParts, gate: Gate, x: Exchange): Promise<void> {
  x.label = 'scim';
  findRoute(gate, x);
  await admitProvisioning(gate, x);
  const body = await bodyOf(x);
  mark();
  const reply = await gateway.provision(x, callOf(gateway, x, body));
  const headers = commonHeaders(x, gateway.replyOptions(), reply.headers);
  if (reply.body === null) return send(x, reply.status ?? 200, headers, null);
  headers.push('Content-Type', SCIM_MEDIA_TYPE);
  send(x, reply.status ?? 200, headers, bytesOf(reply.body));
}

function findRoute(gate: Gate, x: Exchange): void {
  const match = router.match(x.path.slice(SCIM_PREFIX.length), gate.now());
  if (!match) throw new PlatformError('ROUTE_NOT_FOUND', 'There is no SCIM resource at this path.');
  const route = match.methods.get(x.method === 'HEAD' ? 'GET' : x.method);
  if (!route)
    throw new PlatformError('METHOD_NOT_ALLOWED', 'The request method is not supported for this path.', {
      // Pages of other origins have nothing to ask here, so there is no preflight.
      headers: { Allow: allowed(match.methods).replace(', OPTIONS', '') },
    });
  x.routed(route, match.values);
}

async function bodyOf(x: Exchange): Promise<Uint8Array | null> {
  if (!hasBody(x)) return null;
  checkMediaType(x, [SCIM_MEDIA_TYPE, 'application/json']);
  return readBytes(x, LIMITS.scim_body_max_bytes);
}

function callOf({ baseUrl }: GatewayParts, x: Exchange, body: Uint8Array | null): ScimCall {
  const { operation, parameterNames } = x.route;
  const path = Object.fromEntries(parameterNames.map((name, i) => [name, decode(x.pathValues[i] ?? '') ?? '']));
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = x.req.headers;
  const { requestId } = x;
  return {
    operationId: operation.operationId,
    baseUrl,
    path,
    query: Object.fromEntries(new URLSearchParams(x.rawQuery)),
    headers: {
      ...(ifMatch === undefined ? {} : { ifMatch }),
      ...(ifNoneMatch === undefined ? {} : { ifNoneMatch }),
      ...(operation.mutation ? { idempotencyKey: `scim.${requestId}` } : {}),
    },
    ...(operation.mutation ? { fingerprint: hash('sha256', requestId) } : {}),
    ...(body ? { body } : {}),
  };
}

const bytesOf = (body: Buffer | object): Uint8Array =>
  body instanceof Uint8Array ? body : Buffer.from(JSON.stringify(body));

const ERROR_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:Error';
const BAD_REQUEST = 400;
const UNPROCESSABLE = 422;
const DETAIL_MAX_CHARS = 2_000;

/** What SCIM calls the errors whose details do not say. */
const SCIM_TYPES: Partial<Record<ErrorCode, string>> = {
  BODY_REQUIRED: 'invalidSyntax',
  REQUEST_MALFORMED: 'invalidSyntax',
  UNIQUE_VALUE_CONFLICT: 'uniqueness',
  DUPLICATE_RULE: 'uniqueness',
  SORT_INVALID: 'invalidValue',
  PARAMETER_INVALID: 'invalidValue',
  VALIDATION_FAILED: 'invalidValue',
  IF_MATCH_INVALID: 'invalidValue',
};

/** Sends an error as RFC 7644 section 3.12 has it; `code` and `requestId` are ours. */
export function sendScimError(x: Exchange, error: PlatformError, options: ReplyOptions): void {
  // SCIM knows no 422.
  const status = error.status === UNPROCESSABLE ? BAD_REQUEST : error.status;
  const given = error.details?.['scimType'];
  const known = SCIM_TYPES[error.code] ?? (error.code.startsWith('FILTER_') ? 'invalidFilter' : undefined);
  const scimType = typeof given === 'string' ? given : known;
  const body = {
    schemas: [ERROR_SCHEMA],
    status: String(status),
    ...(scimType === undefined ? {} : { scimType }),
    detail: detailOf(error),
    code: error.code,
    requestId: x.requestId,
  };
  const headers = errorHeaders(x, error, options);
  headers.push('Content-Type', SCIM_MEDIA_TYPE);
  send(x, status, headers, Buffer.from(JSON.stringify(body)));
}

function detailOf({ message, errors = [] }: PlatformError): string {
  const said = errors.filter((item) => !message.includes(item.message)).map(about);
  return [message, ...said].join(' ').slice(0, DETAIL_MAX_CHARS).toWellFormed();
}

const about = ({ field, message }: Violation): string =>
  field === null || message.startsWith(field) ? message : `${field}: ${message}`;
