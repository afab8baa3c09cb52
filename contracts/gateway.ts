/** Public operations that the gateway answers itself: descriptions of the contract, never private data. */
import { Type } from 'typebox';
import { type ActionsOf, defineOperation, defineParameter } from '../lib/operation.ts';

/** What the rows of these documents have in common. */
const DOCUMENT = {
  method: 'GET',
  tag: 'schema',
  scopes: 'public',
  risk: 'low',
  cost: 0,
  mutation: false,
  precondition: 'none',
  agentApproval: 'never',
  mcpAvailable: false,
  stability: 'stable',
  headerParameters: [
    defineParameter({
      name: 'If-None-Match',
      description: 'ETag of an earlier answer; 304 when nothing changed.',
      schema: Type.String({ maxLength: 500 }),
    }),
  ],
  errors: [],
} as const;

const headers = { ETag: { description: 'Changes with the document.', schema: Type.String() } };

export const GATEWAY_OPERATIONS = [
  defineOperation({
    ...DOCUMENT,
    operationId: 'schema.openapi.get',
    path: '/openapi.json',
    summary: 'Get the API description',
    description: 'OpenAPI 3.1 of this API. It never names objects of a tenant.',
    action: 'gateway.openapi.get',
    response: {
      status: 200,
      description: 'The API description.',
      schema: Type.Object({ openapi: Type.String() }, { additionalProperties: true, description: 'OpenAPI 3.1' }),
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
      schema: Type.Array(Type.Object({ scope: Type.String(), description: Type.String() })),
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
      schema: Type.Object(
        {
          apiVersion: Type.String(),
          tags: Type.Array(Type.String()),
          operations: Type.Array(Type.Object({ operationId: Type.String() }, { additionalProperties: true })),
          risks: Type.Record(Type.String(), Type.String()),
          limits: Type.Object({}, { additionalProperties: true }),
          auth: Type.Object({}, { additionalProperties: true }),
        },
        { additionalProperties: true },
      ),
      headers,
      example: {
        apiVersion: '1.0.0',
        tags: ['Schema'],
        operations: [{ operationId: 'schema.scopes.list', method: 'GET', path: '/scopes', cost: 0 }],
        risks: { low: 'Reads.', medium: 'Changes.', high: 'Hard to undo.' },
        limits: { takeDefault: 50, takeMax: 200 },
        auth: { authorizationServerMetadata: 'https://erp.example/.well-known/oauth-authorization-server' },
      },
    },
  }),
] as const;

export interface GatewayActions extends ActionsOf<typeof GATEWAY_OPERATIONS> {}
