/**
 * OpenAPI 3.1 of the whole API, generated from the operation rows: what is not in a row is not in the description.
 * Objects of tenants never appear; a record is the generic schema `Record`.
 */

import { Type } from 'typebox';
import { CATALOGUE, type ErrorCode, VIOLATION_CODES } from '../../../lib/errors/catalogue.ts';
import { type Operation, type Parameter, SCOPES, type Tag } from '../../../lib/operation.ts';
import {
  IDEMPOTENCY_KEY_MAX_CHARS,
  IDEMPOTENCY_KEY_MIN_CHARS,
  IDEMPOTENCY_KEY_PATTERN,
} from '../../../lib/values/idempotency-key.ts';
import { API_VERSION } from '../reply.ts';
import { belongsToRuns } from '../run-calls.ts';
import { TAG_NAMES } from './capabilities.ts';

type Json = Record<string, unknown>;

const TAG_DESCRIPTIONS: Record<Tag, string> = {
  schema: 'What the API offers and which objects the caller can see.',
  data: 'Records of the objects of a tenant.',
  composite: 'Several requests in one.',
  files: 'Files and their contents.',
  analytics: 'Dashboards and their widgets.',
  bulk: 'Import and export of many records.',
  events: 'What happened, and subscriptions to it.',
  me: 'The caller, its limits and connections.',
  notifications: 'Notifications of the caller.',
  calendar: 'Calendars and their events.',
  agent: 'Runs of agents and the approval of what they want to do.',
  metadata: 'The configuration of a tenant as files.',
};

/** Codes that every operation of a kind can answer, in addition to those of its row. */
function codesOf(operation: Operation): ErrorCode[] {
  const codes = new Set<ErrorCode>([
    'PARAMETER_UNKNOWN',
    'PARAMETER_INVALID',
    'URI_TOO_LONG',
    'REQUEST_MALFORMED',
    'RATE_LIMIT_EXCEEDED',
    'INTERNAL_ERROR',
    'SERVICE_UNAVAILABLE',
  ]);
  const add = (...more: ErrorCode[]): void => {
    for (const code of more) codes.add(code);
  };
  if (operation.scopes !== 'public') {
    add('TOKEN_MISSING', 'TOKEN_INVALID', 'TOKEN_EXPIRED', 'TOKEN_REVOKED', 'TOKEN_AUDIENCE_INVALID');
    add('CLIENT_DISABLED', 'TENANT_SUSPENDED', 'IP_NOT_ALLOWED');
    if (operation.operationId !== 'me.identity.get') add('API_ACCESS_DISABLED');
    add('CONCURRENCY_LIMIT_EXCEEDED', 'DAILY_LIMIT_EXCEEDED');
  }
  if (typeof operation.scopes !== 'string') add('SCOPE_INSUFFICIENT');
  if (belongsToRuns(operation)) add('RUN_NOT_FOUND', 'RUN_NOT_ACTIVE', 'AGENT_POLICY_DENIED', 'AGENT_BUDGET_EXCEEDED');
  if (operation.mutation && belongsToRuns(operation))
    add('APPROVAL_REQUIRED', 'APPROVAL_PENDING', 'APPROVAL_REJECTED', 'APPROVAL_EXPIRED');
  if (operation.stepUp) add('AUTHENTICATION_INSUFFICIENT');
  if (operation.queryParameters?.some((one) => one.required)) add('PARAMETER_REQUIRED');
  if (operation.requestBody) {
    add('REQUEST_TOO_LARGE', 'MEDIA_TYPE_UNSUPPORTED');
    if (operation.requestBody.required) add('BODY_REQUIRED');
    if (operation.requestBody.validate !== false) add('BODY_PROPERTY_UNKNOWN', 'PARAMETER_REQUIRED');
  }
  if (operation.mutation)
    add('IDEMPOTENCY_KEY_REQUIRED', 'IDEMPOTENCY_KEY_INVALID', 'IDEMPOTENCY_KEY_REUSED', 'IDEMPOTENCY_IN_PROGRESS');
  if (operation.precondition === 'ifMatch') add('IF_MATCH_REQUIRED', 'IF_MATCH_INVALID', 'ETAG_MISMATCH');
  if (operation.precondition === 'expectedRevision')
    add('EXPECTED_REVISION_REQUIRED', 'PARAMETER_CONFLICT', 'IF_MATCH_INVALID', 'REVISION_MISMATCH');
  add(...operation.errors);
  return [...codes];
}

const RESPONSE_HEADERS: Json = {
  'X-Request-Id': { description: 'Name of this request, for support.', schema: { type: 'string' } },
  'X-RateLimit-Remaining': {
    description: 'Fewest cost units left over the policies that bind the caller.',
    schema: { type: 'integer', minimum: 0 },
  },
  'X-API-Version': { description: 'Version of the API.', schema: { type: 'string' } },
  RateLimit: { description: 'Tightest policy, units left and seconds to a full limit.', schema: { type: 'string' } },
  'RateLimit-Policy': { description: 'Policies that bind the caller.', schema: { type: 'string' } },
  'Retry-After': { description: 'Seconds to wait before trying again.', schema: { type: 'integer', minimum: 0 } },
  'WWW-Authenticate': { description: 'How to authenticate (RFC 6750).', schema: { type: 'string' } },
};

const STANDARD_HEADERS = ['X-Request-Id', 'X-RateLimit-Remaining', 'X-API-Version', 'RateLimit', 'RateLimit-Policy'];

const headerReferences = (names: readonly string[]): Json =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

const ERROR_SCHEMA: Json = {
  type: 'object',
  description: 'Every error answer has this body.',
  required: ['code', 'message', 'status', 'requestId', 'type', 'retryable'],
  properties: {
    code: { type: 'string', description: 'Stable code.', enum: Object.keys(CATALOGUE) },
    message: { type: 'string', description: 'English sentence for a developer.' },
    status: { type: 'integer', description: 'The HTTP status.' },
    requestId: { type: 'string', description: 'Equals the header X-Request-Id.' },
    type: { type: 'string', format: 'uri', description: 'Page about this code.' },
    retryable: { type: 'boolean', description: 'The same key and body may be sent again unchanged.' },
    retryAfterSeconds: { type: 'integer', minimum: 0, description: 'Equals the header Retry-After.' },
    errors: {
      type: 'array',
      description: 'All violations at once.',
      items: { $ref: '#/components/schemas/Violation' },
    },
    details: { type: 'object', additionalProperties: true, description: 'Facts that belong to the code.' },
  },
};

const VIOLATION_SCHEMA: Json = {
  type: 'object',
  description: 'One violation.',
  required: ['pointer', 'field', 'code', 'message', 'ruleApiName', 'params'],
  properties: {
    pointer: {
      type: 'string',
      description: 'JSON Pointer into the body, or query:<name>, header:<name>, path:<name>.',
    },
    field: { type: ['string', 'null'], description: 'apiName of the field.' },
    code: {
      type: 'string',
      description: 'Code of the violation.',
      enum: [...new Set<string>([...VIOLATION_CODES, ...Object.keys(CATALOGUE)])],
    },
    message: { type: 'string', description: 'English sentence.' },
    ruleApiName: { type: ['string', 'null'], description: 'Rule of the tenant that refused.' },
    params: { type: 'object', additionalProperties: true, description: 'Facts that belong to the violation.' },
  },
};

/** The description as a plain object. */
export function openapi(operations: readonly Operation[], baseUrl: string): Json {
  const schemas: Record<string, unknown> = { Error: ERROR_SCHEMA, Violation: VIOLATION_SCHEMA };
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    const item = (paths[operation.path] ??= {});
    item[operation.method.toLowerCase()] = hoist(describe(operation), schemas);
  }
  const tags = [...new Set(operations.map((operation) => operation.tag))].sort();
  const codes = new Set(operations.flatMap(codesOf));
  return {
    openapi: '3.1.0',
    info: {
      title: 'ERP platform API',
      version: API_VERSION,
      description:
        'Business records of tenant-defined objects, and the configuration that defines them. Access is OAuth 2.0 in user mode: every operation keeps permissions, sharing, validation and audit of the user.',
      contact: { name: 'Platform team', url: baseUrl },
      license: { name: 'Apache License 2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    servers: [{ url: `${baseUrl}/api/v1`, description: 'This platform.' }],
    tags: tags.map((tag) => ({ name: TAG_NAMES[tag], description: TAG_DESCRIPTIONS[tag] })),
    security: [{ oauth2: [] }],
    paths,
    components: {
      securitySchemes: {
        oauth2: {
          type: 'oauth2',
          description: 'Authorization code with PKCE (S256). Device code is described in the server metadata.',
          flows: {
            authorizationCode: {
              authorizationUrl: `${baseUrl}/oauth2/authorize`,
              tokenUrl: `${baseUrl}/oauth2/token`,
              refreshUrl: `${baseUrl}/oauth2/token`,
              scopes: SCOPES,
            },
          },
        },
      },
      headers: RESPONSE_HEADERS,
      examples: Object.fromEntries(
        [...codes].sort().map((code) => [code, { summary: CATALOGUE[code].title, value: errorExample(code, baseUrl) }]),
      ),
      schemas,
    },
  };
}

/** Moves schemas that carry a name (`$id`) into the components, so that each is described once. */
function hoist(value: unknown, schemas: Record<string, unknown>): unknown {
  const visit = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(visit);
    if (typeof part !== 'object' || part === null) return part;
    const copy = withAnyName(Object.fromEntries(Object.entries(part).map(([key, inner]) => [key, visit(inner)])));
    const name = copy['$id'];
    if (typeof name !== 'string' || !('type' in copy) || !/^[A-Z][A-Za-z]+$/.test(name)) return copy;
    delete copy['$id'];
    schemas[name] ??= copy;
    return { $ref: `#/components/schemas/${name}` };
  };
  return visit(value);
}

/** The pattern by which typebox says that a mapping takes any name. */
const ANY_NAME = '^.*$';

/** A mapping with any names, in the words that generators of clients understand. */
function withAnyName(schema: Json): Json {
  const { patternProperties: patterns, ...rest } = schema;
  if (typeof patterns !== 'object' || patterns === null || 'additionalProperties' in rest) return schema;
  const [only, ...others] = Object.entries(patterns);
  return only?.[0] === ANY_NAME && others.length === 0 ? { ...rest, additionalProperties: only[1] } : schema;
}

function describe(operation: Operation): Json {
  const scopes = typeof operation.scopes === 'string' ? [] : [...operation.scopes];
  return {
    operationId: operation.operationId,
    summary: operation.summary,
    description: operation.description ?? `${operation.summary}.`,
    tags: [TAG_NAMES[operation.tag]],
    security: operation.scopes === 'public' ? [] : [{ oauth2: scopes }],
    parameters: parametersOf(operation),
    ...(operation.requestBody ? { requestBody: requestBodyOf(operation.requestBody) } : {}),
    responses: responsesOf(operation),
    'x-erp-risk': operation.risk,
    'x-erp-cost': operation.cost,
    'x-erp-mutation': operation.mutation,
    'x-erp-mcp-available': operation.mcpAvailable,
    'x-erp-scopes': scopes,
    ...(operation.permission ? { 'x-erp-permission': operation.permission } : {}),
    ...(operation.stepUp ? { 'x-erp-step-up': operation.stepUp } : {}),
    'x-erp-stability': operation.stability,
    'x-erp-agent-approval': operation.agentApproval,
  };
}

function parametersOf(operation: Operation): Json[] {
  const parameters: Json[] = [];
  for (const [, name] of operation.path.matchAll(/\{(\w+)\}/g)) {
    const declared = operation.pathParameters?.find((one) => one.name === name);
    parameters.push({
      name,
      in: 'path',
      required: true,
      description: declared?.description ?? `The ${name} of the resource.`,
      schema: declared?.schema ?? { type: 'string' },
      ...(declared?.example === undefined ? {} : { example: declared.example }),
    });
  }
  for (const one of operation.queryParameters ?? []) parameters.push(parameter('query', one));
  const headers = new Map(impliedHeaders(operation).map((one) => [one.name.toLowerCase(), one]));
  for (const one of operation.headerParameters ?? []) headers.set(one.name.toLowerCase(), one);
  for (const one of headers.values()) parameters.push(parameter('header', one));
  return parameters;
}

function parameter(where: 'query' | 'header', one: Parameter): Json {
  const common = {
    name: one.name,
    in: where,
    ...(one.required ? { required: true } : {}),
    description: one.description,
  };
  if (one.json)
    return {
      ...common,
      content: {
        'application/json': { schema: one.schema, ...(one.example === undefined ? {} : { example: one.example }) },
      },
    };
  return { ...common, schema: one.schema, ...(one.example === undefined ? {} : { example: one.example }) };
}

function impliedHeaders(operation: Operation): Parameter[] {
  const headers: Parameter[] = [];
  const text = (name: string, required: boolean, description: string, schema: Json, example: unknown): void => {
    headers.push({
      name,
      required,
      description,
      schema: Type.String(schema),
      example,
    });
  };
  if (operation.mutation)
    text(
      'Idempotency-Key',
      true,
      'Names the intention. A retry sends the same key and body; another operation uses another key.',
      {
        minLength: IDEMPOTENCY_KEY_MIN_CHARS,
        maxLength: IDEMPOTENCY_KEY_MAX_CHARS,
        pattern: IDEMPOTENCY_KEY_PATTERN,
      },
      'order-7f3a-1',
    );
  if (belongsToRuns(operation))
    text(
      'X-Agent-Run-Id',
      false,
      'The run that the call belongs to. Clients that are agents must send it.',
      { format: 'uuid' },
      '0193d3b0-52f1-7d42-8a11-5e0c9f7b2d10',
    );
  if (operation.precondition === 'ifMatch') text('If-Match', true, 'Strong ETag that was read. Never `*`.', {}, '"k7"');
  if (operation.precondition === 'expectedRevision')
    text('X-Expected-Revision', false, 'Revision that was read.', { pattern: '^[0-9]+$' }, '4');
  if (operation.precondition === 'expectedRevision')
    text('If-Match', false, 'ETag that was read, in place of the revision. Never `*`.', {}, '"r4"');
  return headers;
}

function requestBodyOf(body: NonNullable<Operation['requestBody']>): Json {
  const media = { schema: body.schema, ...(body.example === undefined ? {} : { example: body.example }) };
  return {
    required: body.required,
    description: body.description ?? `JSON, ${body.maxBytes} bytes at most.`,
    content: Object.fromEntries(['application/json', ...(body.contentTypes ?? [])].map((type) => [type, media])),
  };
}

interface ResponseObject {
  description: string;
  headers: Json;
  content?: Record<string, Json>;
}

function responsesOf(operation: Operation): Record<string, ResponseObject> {
  const { response } = operation;
  const responses: Record<string, ResponseObject> = {
    [response.status]: {
      description: response.description,
      headers: { ...headerReferences(STANDARD_HEADERS), ...response.headers },
      ...(response.schema
        ? {
            content: {
              [response.contentType ?? 'application/json']: {
                schema: response.schema,
                ...(response.example === undefined ? {} : { example: response.example }),
              },
            },
          }
        : {}),
    },
  };
  for (const { status, description, schema, headers, example } of operation.alternatives ?? []) {
    const same = responses[status];
    const media = same?.content?.['application/json'];
    responses[status] = {
      ...(same ?? { headers: { ...headerReferences(STANDARD_HEADERS), ...headers } }),
      description: same ? `${same.description} ${description}` : description,
      content: {
        'application/json': media
          ? { ...media, schema: { anyOf: [media['schema'], schema] } }
          : { schema, ...(example === undefined ? {} : { example }) },
      },
    };
  }
  if (operation.method === 'GET' && operation.headerParameters?.some(({ name }) => name === 'If-None-Match'))
    responses['304'] = {
      description: 'Nothing changed since the ETag in If-None-Match.',
      headers: headerReferences(STANDARD_HEADERS),
    };
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of codesOf(operation)) {
    const { status } = CATALOGUE[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  for (const [status, codes] of [...byStatus].sort(([a], [b]) => a - b))
    responses[status] = {
      description: codes.map((code) => `\`${code}\` ${CATALOGUE[code].title}.`).join(' '),
      headers: headerReferences([
        ...STANDARD_HEADERS,
        ...(status === 401 || status === 403 ? ['WWW-Authenticate'] : []),
        ...(status === 429 || status === 503 ? ['Retry-After'] : []),
      ]),
      content: {
        'application/json': {
          schema: { $ref: '#/components/schemas/Error' },
          examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
        },
      },
    };
  return responses;
}

function errorExample(code: ErrorCode, baseUrl: string): Json {
  const { status, title } = CATALOGUE[code];
  const waits = status === 429 || status === 503;
  return {
    code,
    message: `${title}.`,
    status,
    requestId: 'req_01JD9Z8Q4M7T2V5K6N8P0R3S1W',
    type: `${baseUrl}/api/v1/versions/${API_VERSION}/docs/errors/${code}`,
    retryable: 'retryable' in CATALOGUE[code],
    ...(waits ? { retryAfterSeconds: 1 } : {}),
  };
}
