/**
 * The door for provisioning: a request below /scim/v2 passes the checks of an operation and is handed to data, which
 * answers in the form of SCIM. Source: docs/reference/scim.md.
 */
import { hash } from 'node:crypto';
import { SCIM_MEDIA_TYPE, SCIM_PREFIX, SCIM_ROUTES, type ScimCall } from '../../../contracts/scim.ts';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError, type Violation } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { mark } from '../../../mixins/watchdog/work.ts';
import type { DoorKeeper, HttpEdge } from '../edge/edge.ts';
import type { Exchange } from '../edge/exchange.ts';
import { commonHeaders, errorHeaders, type ReplyOptions, send } from '../edge/reply.ts';
import { checkMediaType } from '../pipeline/body.ts';
import { decode } from '../pipeline/form.ts';
import type { Gate } from '../pipeline/gate.ts';
import { admitProvisioning, ask, requestContextOf } from '../pipeline/index.ts';
import { allowed, Router } from '../pipeline/router.ts';

const router = new Router(SCIM_ROUTES);

export class ScimDoor implements DoorKeeper {
  readonly #edge: HttpEdge;
  readonly #gate: Gate;

  constructor(edge: HttpEdge, gate: Gate) {
    this.#edge = edge;
    this.#gate = gate;
  }

  async answer(x: Exchange): Promise<void> {
    x.label = 'scim';
    findRoute(x);
    await admitProvisioning(this.#gate, x);
    const body = await bodyOf(x);
    mark();
    const call = callOf(this.#gate.baseUrl, x, body);
    const reply = await ask(this.#gate, x, x.route.operation.action, call, requestContextOf(x));
    const headers = commonHeaders(x, this.#edge.replyOptions(), reply.headers);
    if (reply.body === null) return send(x, reply.status ?? 200, headers, null);
    headers.push('Content-Type', SCIM_MEDIA_TYPE);
    send(x, reply.status ?? 200, headers, bytesOf(reply.body));
  }

  sendError(x: Exchange, error: PlatformError): void {
    sendScimError(x, error, this.#edge.replyOptions());
  }
}

function findRoute(x: Exchange): void {
  const match = router.match(x.path.slice(SCIM_PREFIX.length), platformTime());
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
  if (!x.hasBody) return null;
  checkMediaType(x, [SCIM_MEDIA_TYPE, 'application/json']);
  return x.receive(LIMITS.scim_body_max_bytes);
}

function callOf(baseUrl: string, x: Exchange, body: Uint8Array | null): ScimCall {
  const { operation, parameterNames } = x.route;
  const path = Object.fromEntries(parameterNames.map((name, i) => [name, decode(x.pathValues[i] ?? '') ?? '']));
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = x.headers;
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

/** SCIM types of errors whose details name none. */
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
function sendScimError(x: Exchange, error: PlatformError, options: ReplyOptions): void {
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
