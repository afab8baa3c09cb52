/** Public operations that the gateway answers itself: descriptions of the contract, never private data. */
import { Type } from 'typebox';
import { documentsUrl } from '../lib/addresses.ts';
import { type ActionsOf, defineOperation, nullable } from '../lib/operation.ts';
import { ifNoneMatch } from './data/rows.ts';
import type { ServiceDeclaration } from './declaration.ts';
import { GATEWAY_GUIDANCE } from './guidance/gateway.ts';

/** Common to the rows of these documents. */
const DOCUMENT = {
  method: 'GET',
  tag: 'schema',
  scopes: 'public',
  cost: 0,
  headerParameters: [ifNoneMatch],
  errors: [],
} as const;

const DeprecatedOperation = Type.Object(
  {
    operationId: Type.String(),
    method: Type.String(),
    path: Type.String(),
    since: Type.String({ format: 'date', description: 'Day of the notice.' }),
    sunset: Type.String({ format: 'date', description: 'The first day without it.' }),
    replacement: nullable(Type.String({ description: 'operationId of what takes its place.' })),
    documentation: Type.String({ format: 'uri', description: 'Page about the replacement.' }),
    clients: Type.Array(
      Type.Object({
        clientId: Type.String(),
        clientName: Type.String({ description: 'The client id where the application does not exist any more.' }),
        requests: Type.Integer({ description: 'In the last 30 days; those of the last hour may be missing.' }),
        lastUsedAt: Type.String({ format: 'date-time' }),
      }),
      { description: 'Most recent callers first; at most 1,000 over all operations.' },
    ),
  },
  { title: 'DeprecatedOperation' },
);

const headers = { ETag: { description: 'Changes with the document.', schema: Type.String() } };

const DescribedOperation = Type.Object(
  {
    operationId: Type.String(),
    method: Type.Enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
    path: Type.String(),
    tag: Type.String(),
    scopes: Type.Array(Type.String(), { description: 'Scopes that are all needed.' }),
    oneOfScopes: Type.Array(Type.String(), { description: 'Scopes of which one is needed; empty: none of several.' }),
    risk: Type.Enum(['low', 'medium', 'high'], { title: 'RiskLevel' }),
    givesAccess: nullable(
      Type.Object(
        {
          objects: Type.Optional(Type.Array(Type.String(), { description: 'Calls on these objects; absent: on all.' })),
          properties: Type.Optional(
            Type.Record(Type.String(), Type.Unknown(), {
              description: 'Calls whose body has one of these, except with this value; absent: all.',
            }),
          ),
          scope: Type.String({ description: 'Additional scope that every client needs for such a call.' }),
        },
        { title: 'AccessGiven', description: 'Calls that give access, and are of high risk.' },
      ),
    ),
    cost: Type.Integer(),
    mutation: Type.Boolean(),
    idempotencyKey: Type.Enum(['required', 'none']),
    precondition: Type.Enum(['ifMatch', 'expectedRevision', 'none']),
    agentApproval: Type.Enum(['never', 'policy', 'always']),
    mcpAvailable: Type.Boolean(),
    stability: Type.Enum(['stable', 'beta']),
    deprecated: nullable(
      Type.Object({ since: Type.String(), sunset: Type.String(), replacement: nullable(Type.String()) }),
    ),
  },
  { title: 'OperationCapabilities', additionalProperties: true },
);

const CapabilityLimits = Type.Object(
  {
    takeDefault: Type.Integer(),
    takeMax: Type.Integer(),
    filterConditionsMax: Type.Integer(),
    sortMax: Type.Integer(),
    idempotency: Type.Object({ minLength: Type.Integer(), maxLength: Type.Integer(), retentionHours: Type.Number() }),
    bodyBytes: Type.Integer(),
    ratePolicies: Type.Array(
      Type.Object({ name: Type.String(), limit: Type.Integer(), windowSeconds: Type.Integer() }),
    ),
  },
  { title: 'CapabilityLimits', additionalProperties: true },
);

const CapabilityMcp = Type.Object(
  {
    endpoint: Type.String(),
    protocolVersions: Type.Array(Type.String()),
    protectedResourceMetadata: Type.String(),
    tools: Type.Array(
      Type.Object({
        name: Type.String(),
        title: Type.String(),
        operationId: nullable(Type.String()),
        scopes: Type.Array(Type.String()),
        cost: Type.Integer(),
      }),
    ),
    resources: Type.Array(
      Type.Object({ uri: Type.String(), operationId: Type.String(), scopes: Type.Array(Type.String()) }),
    ),
    writeLimits: Type.Object({ mutationsAllowed: Type.Boolean() }),
  },
  { title: 'CapabilityMcp', additionalProperties: true, description: 'The endpoint for assistants.' },
);

export const PlatformCapabilities = Type.Object(
  {
    apiVersion: Type.String(),
    tags: Type.Array(Type.String()),
    operations: Type.Array(DescribedOperation),
    risks: Type.Record(Type.String(), Type.String()),
    limits: CapabilityLimits,
    auth: Type.Object({
      authorizationServerMetadata: Type.String(),
      protectedResourceMetadata: Type.String(),
      grantTypes: Type.Array(Type.String()),
    }),
    events: Type.Object({
      types: Type.Array(Type.String()),
      delivery: Type.Array(Type.String()),
      retentionHours: Type.Number(),
    }),
    metadata: Type.Object({ formatVersion: Type.Integer(), types: Type.Array(Type.String()) }),
    mcp: CapabilityMcp,
    cli: Type.Object({ name: Type.String(), latestVersion: nullable(Type.String()) }),
  },
  { title: 'PlatformCapabilities', additionalProperties: true },
);

const GATEWAY_OPERATIONS = [
  defineOperation({
    ...DOCUMENT,
    operationId: 'schema.openapi.get',
    path: '/openapi.json',
    summary: 'Get the API description',
    description: 'OpenAPI 3.1 of this API. It never names objects of a tenant.',
    mcp: { resource: 'erp://openapi', name: 'API description' },
    action: 'gateway.openapi.get',
    response: {
      status: 200,
      description: 'The API description.',
      schema: Type.Object(
        { openapi: Type.String() },
        { title: 'ApiDescription', additionalProperties: true, description: 'OpenAPI 3.1' },
      ),
      headers,
      example: { openapi: '3.1.0', info: { title: 'ERP platform API', version: '1.0.0' }, paths: {} },
    },
  }),
  defineOperation({
    ...DOCUMENT,
    operationId: 'schema.scopes.list',
    path: '/scopes',
    summary: 'List the scopes',
    description: 'All OAuth scopes with their descriptions.',
    action: 'gateway.scopes.list',
    response: {
      status: 200,
      description: 'All scopes.',
      schema: Type.Array(Type.Object({ scope: Type.String(), description: Type.String() }), { title: 'ScopeList' }),
      headers,
      example: [{ scope: 'data:read', description: 'Read objects, descriptions and records the user can see.' }],
    },
  }),
  defineOperation({
    ...DOCUMENT,
    operationId: 'schema.capabilities.get',
    path: '/capabilities',
    summary: 'Get the capabilities',
    description: 'Operations with risk and cost, limits, and where to sign in; the same for everyone.',
    action: 'gateway.capabilities.get',
    response: {
      status: 200,
      description: 'The capabilities.',
      schema: PlatformCapabilities,
      headers,
    },
  }),
  defineOperation({
    operationId: 'schema.deprecations.list',
    method: 'GET',
    path: '/deprecations',
    tag: 'schema',
    summary: 'List what is deprecated, and who uses it',
    description:
      'Deprecated operations, with the clients of the tenant that called them in the last 30 days and must be changed before the sunset.',
    scopes: ['setup:read'],
    permission: 'metadataRead',
    response: {
      status: 200,
      description: 'By sunset; empty: nothing is deprecated.',
      schema: Type.Object({ records: Type.Array(DeprecatedOperation) }, { title: 'DeprecatedOperations' }),
      example: {
        records: [
          {
            operationId: 'data.records.list',
            method: 'GET',
            path: '/data/{objectApiName}',
            since: '2027-01-01',
            sunset: '2028-01-01',
            replacement: 'data.records.query',
            documentation: `${documentsUrl('https://erp.example')}/guides/first-request`,
            clients: [
              {
                clientId: 'erp-cli',
                clientName: 'ERP command line',
                requests: 12,
                lastUsedAt: '2027-06-21T00:01:22.123+00:00',
              },
            ],
          },
        ],
      },
    },
    errors: ['METADATA_PERMISSION_DENIED'],
    action: 'gateway.deprecations.list',
  }),
] as const;

/** Broadcast event: streams of events with one of these topics have more to read. */
export interface GatewayEvents {
  'gateway.streams.wake': { topics: readonly string[] };
}

export interface GatewayActions extends ActionsOf<typeof GATEWAY_OPERATIONS> {}

export const SERVICE = {
  purpose: 'The HTTP edge: the only service that listens for callers.',
  listens: 'public',
  awaitedByGateway: false,
  usesContents: true,
  kubernetes: {
    replicas: { min: 2, max: 10 },
    connections: 2,
    requests: { cpu: '500m', memory: '256Mi' },
    limits: { cpu: '2', memory: '768Mi' },
  },
  operations: GATEWAY_OPERATIONS,
  guidance: GATEWAY_GUIDANCE,
  calls: [
    'agent.approvals.request',
    'agent.runs.admit',
    'agent.steps.settle',
    'auth.calendarLinks.find',
    'auth.deprecatedUses.add',
    'auth.deprecatedUses.list',
    'auth.grants.check',
    'auth.http.handle',
    'auth.keys.list',
    'auth.origins.check',
    'calendar.feeds.read',
    'data.audit.deny',
    'data.audit.suppress',
    'data.grants.confirm',
    'data.scim.handle',
    'data.users.get',
    'mcp.http.handle',
    'ratelimit.leases.take',
  ],
  emits: ['events.log.written'],
  hears: ['auth.grants.revoked', 'auth.keys.rotated', 'gateway.streams.wake', 'metadata.tenant.changed'],
} as const satisfies ServiceDeclaration<typeof GATEWAY_OPERATIONS>;
