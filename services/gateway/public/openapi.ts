/**
 * OpenAPI 3.1 of the whole API, generated from the operation rows: what is not in a row is not in the description.
 * Objects of tenants never appear; a record is the generic schema `DataRecord`. Whatever occurs more than once is a
 * component. Source: docs/decisions/generated-clients.md.
 */
import { STATUS_CODES } from 'node:http';
import { Type } from 'typebox';
import { ErrorDetails, ViolationSchema } from '../../../contracts/errors.ts';
import { EXAMPLES, errorExample, type RecordedExample } from '../../../contracts/examples.ts';
import { API_VERSION, apiUrl } from '../../../lib/addresses.ts';
import { CATALOGUE, type ErrorCode, saysWhenToRetry } from '../../../lib/errors/catalogue.ts';
import {
  belongsToRuns,
  type Deprecation,
  isMcpTool,
  type Operation,
  type Parameter,
  SCOPES,
  TAGS,
  waysToScopes,
} from '../../../lib/operation.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import {
  IDEMPOTENCY_KEY_MAX_CHARS,
  IDEMPOTENCY_KEY_MIN_CHARS,
  IDEMPOTENCY_KEY_PATTERN,
} from '../../../lib/values/idempotency-key.ts';
import { deprecationNotice } from '../pipeline/deprecation.ts';
import { Components, type DescribedParameter, type Json, reference } from './components.ts';

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
    if (operation.apiPermission !== false) add('API_ACCESS_DISABLED');
    add('CONCURRENCY_LIMIT_EXCEEDED', 'DAILY_LIMIT_EXCEEDED');
  }
  if (typeof operation.scopes !== 'string' || operation.oneOfScopes || operation.givesAccess) add('SCOPE_INSUFFICIENT');
  if (belongsToRuns(operation)) add('RUN_NOT_FOUND', 'RUN_NOT_ACTIVE', 'AGENT_POLICY_DENIED', 'AGENT_BUDGET_EXCEEDED');
  if (operation.mutation && belongsToRuns(operation))
    add(
      'APPROVAL_REQUIRED',
      'APPROVAL_PENDING',
      'APPROVAL_REJECTED',
      'APPROVAL_EXPIRED',
      'APPROVAL_STALE',
      'APPROVAL_TOO_LARGE',
    );
  if (operation.stepUp) add('AUTHENTICATION_INSUFFICIENT');
  if (operation.queryParameters?.some((one) => one.required)) add('PARAMETER_REQUIRED');
  if (operation.requestBody) {
    add('REQUEST_TOO_LARGE', 'MEDIA_TYPE_UNSUPPORTED');
    const { kind, required, validate } = operation.requestBody;
    if (kind === 'stream') add('UPLOAD_CHECKSUM_MISMATCH', 'CONCURRENCY_LIMIT_EXCEEDED');
    else if (required) add('BODY_REQUIRED');
    if (kind !== 'stream' && validate !== false) add('BODY_PROPERTY_UNKNOWN', 'PARAMETER_REQUIRED');
  }
  if (operation.response.kind === 'file') add('RANGE_NOT_SATISFIABLE', 'ETAG_MISMATCH', 'CONCURRENCY_LIMIT_EXCEEDED');
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

const NOT_MODIFIED = 'Nothing changed since the ETag in If-None-Match.';

const headerReferences = (names: readonly string[]): Json =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

const ERROR_PROPERTIES: Json = {
  code: { type: 'string', description: 'Stable code.', enum: Object.keys(CATALOGUE) },
  message: { type: 'string', description: 'English sentence for a developer.' },
  status: { type: 'integer', description: 'The HTTP status.' },
  requestId: { type: 'string', description: 'Equals the header X-Request-Id.' },
  type: { type: 'string', format: 'uri', description: 'Page about this code.' },
  retryable: { type: 'boolean', description: 'The same key and body may be sent again unchanged.' },
  retryAfterSeconds: { type: 'integer', minimum: 0, description: 'Equals the header Retry-After.' },
  errors: { type: 'array', description: 'All violations at once.', items: reference('schemas', 'Violation') },
  details: reference('schemas', 'ErrorDetails'),
};

const ERROR_SCHEMA: Json = {
  type: 'object',
  description: 'Every error answer has this body.',
  required: ['code', 'message', 'status', 'requestId', 'type', 'retryable'],
  properties: ERROR_PROPERTIES,
};

const PROBLEM_SCHEMA: Json = {
  description: 'An error as RFC 9457 has it, for callers that prefer application/problem+json.',
  allOf: [
    reference('schemas', 'Error'),
    {
      type: 'object',
      required: ['title', 'detail', 'instance'],
      properties: {
        title: { type: 'string', description: 'What the code means, in a few words.' },
        detail: { type: 'string', description: 'Equals `message`.' },
        instance: { type: 'string', format: 'uri', description: 'Names this request: `urn:request:<requestId>`.' },
      },
    },
  ],
};

const DESCRIPTION = `Business records of tenant-defined objects, and the configuration that defines them. Access is OAuth 2.0 in user mode: every operation keeps permissions, sharing, validation and audit of the user.

**Errors** have the body \`Error\`; callers that prefer \`application/problem+json\` get the same with the members of RFC 9457. The codes that an operation can answer are in its \`x-erp-errors\`.

**Decimals** in records, in their changes and in results of widgets are JSON numbers with all their digits. A client whose numbers are binary, such as JavaScript, sends \`Accept: application/json;IEEE754Compatible=true\` and gets them as strings. Bodies take both.

**Queries**: \`where\`, \`whereIn\`, \`filters\` and \`sort\` in an address are JSON texts. Programs rather use \`POST /data/{objectApiName}/query\`, which takes the same as JSON values.`;

export const LICENSE = { name: 'Apache License 2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' } as const;
export const contact = (baseUrl: string): object => ({ name: 'Platform team', url: baseUrl });

/** The description as a plain object. */
export function openapi(operations: readonly Operation[], baseUrl: string): Json {
  const components = new Components();
  components.add('schemas', 'Error', ERROR_SCHEMA);
  components.add('schemas', 'ProblemDetails', PROBLEM_SCHEMA);
  components.schema(ViolationSchema);
  components.schema(ErrorDetails);
  const codes = [...new Set(operations.flatMap(codesOf))].sort();
  for (const [status, ofStatus] of byStatus(codes))
    components.add('responses', statusName(status), errorResponse(status, ofStatus));
  components.add('responses', statusName(304), {
    description: NOT_MODIFIED,
    headers: headerReferences(STANDARD_HEADERS),
  });
  components.countParameters(operations.flatMap(parametersOf));
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    const item = (paths[operation.path] ??= {});
    const example = ownEntry(EXAMPLES, operation.operationId);
    item[operation.method.toLowerCase()] = describe(operation, components, example);
  }
  const tags = [...new Set(operations.map((operation) => operation.tag))].sort();
  return {
    openapi: '3.1.0',
    info: {
      title: 'ERP platform API',
      version: API_VERSION,
      description: DESCRIPTION,
      contact: contact(baseUrl),
      license: LICENSE,
    },
    servers: [{ url: apiUrl(baseUrl), description: 'This platform.' }],
    tags: tags.map((tag) => TAGS[tag]),
    security: [{ oauth2: [] }],
    paths,
    components: {
      securitySchemes: { oauth2: securityScheme(baseUrl) },
      headers: RESPONSE_HEADERS,
      examples: Object.fromEntries(
        codes.map((code) => [code, { summary: CATALOGUE[code].title, value: errorExample(code, baseUrl) }]),
      ),
      ...components.all,
    },
  };
}

/** Every grant that works. OpenAPI 3.1 has no flow for the device code, which is described in words. */
const securityScheme = (baseUrl: string): Json => ({
  type: 'oauth2',
  description: `Grants: \`authorization_code\` with PKCE (S256) for applications with people, \`urn:ietf:params:oauth:grant-type:device_code\` (RFC 8628, at \`${baseUrl}/oauth2/device_authorization\`) for those without a browser, \`client_credentials\` for integrations, which act as the user that their tenant has named, and \`refresh_token\` for those that were granted \`offline_access\`. All addresses are in \`${baseUrl}/.well-known/oauth-authorization-server\` (RFC 8414).`,
  flows: {
    authorizationCode: {
      authorizationUrl: `${baseUrl}/oauth2/authorize`,
      tokenUrl: `${baseUrl}/oauth2/token`,
      refreshUrl: `${baseUrl}/oauth2/token`,
      scopes: SCOPES,
    },
    clientCredentials: { tokenUrl: `${baseUrl}/oauth2/token`, scopes: SCOPES },
  },
});

function describe(operation: Operation, components: Components, example: RecordedExample | undefined): Json {
  const scopes = typeof operation.scopes === 'string' ? [] : [...operation.scopes];
  return {
    operationId: operation.operationId,
    summary: operation.summary,
    description: described(operation.description ?? `${operation.summary}.`, operation.deprecated),
    ...(operation.deprecated ? { deprecated: true } : {}),
    tags: [TAGS[operation.tag].name],
    security: operation.scopes === 'public' ? [] : waysToScopes(operation).map((way) => ({ oauth2: way })),
    parameters: parametersOf(operation).map((one) => components.parameter(one)),
    ...(operation.requestBody ? { requestBody: requestBodyOf(operation.requestBody, components, example) } : {}),
    responses: responsesOf(operation, components, example),
    'x-erp-errors': codesOf(operation).sort(),
    'x-erp-risk': operation.risk,
    'x-erp-cost': operation.cost,
    ...(operation.parts === 'requests' ? { 'x-erp-cost-model': 'sum' } : {}),
    'x-erp-mutation': operation.mutation,
    ...(operation.dryRun ? { 'x-erp-dry-run': true } : {}),
    ...(operation.checkedBy ? { 'x-erp-checked-by': operation.checkedBy.operationId } : {}),
    'x-erp-mcp-available': isMcpTool(operation),
    'x-erp-scopes': scopes,
    ...(operation.oneOfScopes ? { 'x-erp-one-of-scopes': operation.oneOfScopes } : {}),
    ...(operation.permission ? { 'x-erp-permission': operation.permission } : {}),
    ...(operation.givesAccess ? { 'x-erp-gives-access': operation.givesAccess } : {}),
    ...(operation.stepUp ? { 'x-erp-step-up': operation.stepUp } : {}),
    'x-erp-stability': operation.stability,
    'x-erp-agent-approval': operation.agentApproval,
  };
}

const described = (text: string, deprecated: Deprecation | undefined): string =>
  deprecated ? `${text} ${deprecationNotice(deprecated)}` : text;

function parametersOf(operation: Operation): DescribedParameter[] {
  const parameters: DescribedParameter[] = [];
  for (const [, name = ''] of operation.path.matchAll(/\{(\w+)\}/g)) {
    const declared = operation.pathParameters?.find((one) => one.name === name);
    const fallback = { name, description: `The ${name} of the resource.`, schema: Type.String() };
    parameters.push(parameter('path', { ...(declared ?? fallback), required: true }));
  }
  for (const one of operation.queryParameters ?? []) parameters.push(parameter('query', one));
  const headers = new Map(impliedHeaders(operation).map((one) => [one.content['name'], one]));
  for (const one of operation.headerParameters ?? []) headers.set(one.name, parameter('header', one));
  return [...parameters, ...headers.values()];
}

function parameter(
  where: 'path' | 'query' | 'header',
  one: Parameter,
  component = pascal(one.name),
): DescribedParameter {
  const { name, required, description, deprecated, schema, json, example } = one;
  const content = {
    name,
    in: where,
    ...(required ? { required } : {}),
    description: described(description, deprecated),
    ...(deprecated ? { deprecated: true } : {}),
    schema: json ? { type: 'string', contentMediaType: 'application/json', contentSchema: schema } : schema,
    ...(example === undefined ? {} : { example: json ? JSON.stringify(example) : example }),
  };
  return { component, content };
}

/** `X-Agent-Run-Id` → `XAgentRunId`. */
const pascal = (name: string): string =>
  name
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('');

function impliedHeaders(operation: Operation): DescribedParameter[] {
  const headers: DescribedParameter[] = [];
  const text = (
    name: string,
    required: boolean,
    description: string,
    schema: Json,
    example: unknown,
    as?: string,
  ): void => {
    headers.push(parameter('header', { name, required, description, schema: Type.String(schema), example }, as));
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
  if (operation.requestBody?.kind === 'stream')
    text(
      'Content-Digest',
      operation.mutation,
      'SHA-256 of the body (RFC 9530). What arrives with another one is not kept.',
      {},
      'sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:',
    );
  if (operation.response.kind === 'file') {
    text('Range', false, 'The bytes that are wanted, in one range.', {}, 'bytes=1048576-');
    text('If-Range', false, 'ETag of the content that the range is of; of another one all is sent.', {}, '"9f86d081"');
    text('If-None-Match', false, 'ETag of an earlier answer; 304 when nothing changed.', {}, '"k7"');
  }
  if (belongsToRuns(operation))
    text(
      'X-Agent-Run-Id',
      false,
      'The run that the call belongs to. Clients that are agents must send it. Under a run that is a dry run, operations with `x-erp-dry-run` change nothing and answer 200 with what they would do; those on records like `data.records.check`.',
      { format: 'uuid' },
      '0193d3b0-52f1-7d42-8a11-5e0c9f7b2d10',
    );
  if (operation.precondition === 'ifMatch') text('If-Match', true, 'Strong ETag that was read. Never `*`.', {}, '"k7"');
  if (operation.precondition === 'expectedRevision') {
    text('X-Expected-Revision', false, 'Revision that was read.', { pattern: '^[0-9]+$' }, '4');
    text(
      'If-Match',
      false,
      'ETag that was read, in place of the revision. Never `*`.',
      {},
      '"r4"',
      'IfMatchOfRevision',
    );
  }
  text(
    'traceparent',
    false,
    'Trace that the request belongs to (W3C Trace Context); it is handed on to the services.',
    {},
    '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  );
  return headers;
}

function requestBodyOf(
  body: NonNullable<Operation['requestBody']>,
  components: Components,
  recorded: RecordedExample | undefined,
): Json {
  const schema = components.schema(body.schema);
  const example = recorded?.request.body ?? body.example;
  const media = { schema, ...(example === undefined ? {} : { example }) };
  return {
    required: body.required,
    description: body.description ?? `${body.kind === 'stream' ? 'Bytes' : 'JSON'}, ${body.maxBytes} bytes at most.`,
    // The example of a stream is in the first of its types; types of JSON share theirs.
    content: Object.fromEntries(
      mediaTypesOf(body).map((type, i) => [type, body.kind === 'stream' && i > 0 ? { schema } : media]),
    ),
  };
}

const mediaTypesOf = ({ kind, contentTypes }: NonNullable<Operation['requestBody']>): readonly string[] =>
  kind === 'stream' ? (contentTypes ?? ['*/*']) : ['application/json', ...(contentTypes ?? [])];

interface ResponseObject {
  description: string;
  headers: Json;
  content?: Record<string, Json>;
}

function responsesOf(
  operation: Operation,
  components: Components,
  recorded: RecordedExample | undefined,
): Record<string, ResponseObject | Json> {
  const { response } = operation;
  const example = withoutReferences(recorded?.response.body) ?? response.example;
  const answers: Record<string, ResponseObject> = {
    [response.status]: {
      description: `${response.description}${recorded?.shortened ? ' The example is shortened.' : ''}`,
      headers: { ...headerReferences(STANDARD_HEADERS), ...response.headers },
      ...(response.schema
        ? {
            content: {
              [response.contentType ?? 'application/json']: {
                schema: components.schema(response.schema),
                ...(example === undefined ? {} : { example }),
              },
            },
          }
        : {}),
    },
  };
  const responses: Record<string, ResponseObject | Json> = answers;
  for (const { status, description, schema, headers, example } of operation.alternatives ?? []) {
    const same = answers[status];
    const media = same?.content?.['application/json'];
    const answer = {
      ...(same ?? { headers: { ...headerReferences(STANDARD_HEADERS), ...headers } }),
      description: same ? `${same.description} ${description}` : description,
    };
    if (!schema) {
      responses[status] = { ...components.add('responses', statusName(status), answer), description };
      continue;
    }
    const one = components.schema(schema);
    answers[status] = {
      ...answer,
      content: {
        'application/json': media
          ? { ...media, schema: { anyOf: [media['schema'], one] } }
          : { schema: one, ...(example === undefined ? {} : { example }) },
      },
    };
  }
  const isFile = response.kind === 'file';
  if (isFile) responses['206'] = { ...answers[response.status], description: 'The bytes that Range asks for.' };
  if (
    operation.method === 'GET' &&
    (isFile || operation.headerParameters?.some(({ name }) => name === 'If-None-Match'))
  )
    responses['304'] = { ...reference('responses', statusName(304)), description: NOT_MODIFIED };
  for (const [status, codes] of byStatus(codesOf(operation)))
    responses[status] = {
      ...reference('responses', statusName(status)),
      description: codes.map((code) => `\`${code}\``).join(', '),
    };
  return responses;
}

/** Not an example that is a schema itself: generators look for the parts that it names. */
const withoutReferences = (example: unknown): unknown =>
  JSON.stringify(example)?.includes('"$ref":') ? undefined : example;

function byStatus(codes: readonly ErrorCode[]): [number, ErrorCode[]][] {
  return [...Map.groupBy(codes, (code) => CATALOGUE[code].status)].sort(([a], [b]) => a - b);
}

/** `422` → `UnprocessableEntity`. */
const statusName = (status: number): string => pascal(STATUS_CODES[status] ?? String(status));

/** The answer with a status: every operation says itself which of the codes it has. */
function errorResponse(status: number, codes: readonly ErrorCode[]): Json {
  const examples = Object.fromEntries(codes.map((code) => [code, reference('examples', code)]));
  return {
    description: `An error with status ${status}; \`x-erp-errors\` of the operation has its codes.`,
    headers: headerReferences([
      ...STANDARD_HEADERS,
      ...(status === 401 || status === 403 ? ['WWW-Authenticate'] : []),
      ...(codes.some(saysWhenToRetry) ? ['Retry-After'] : []),
    ]),
    content: {
      'application/json': { schema: reference('schemas', 'Error'), examples },
      'application/problem+json': { schema: reference('schemas', 'ProblemDetails') },
    },
  };
}
