/** `GET /capabilities`: what this platform can do, for machines. Source: docs/reference/operations.md. */

import { EVENT_CAPABILITIES } from '../../../contracts/events.ts';
import { DOCUMENT_TOOLS, MCP_PATH, MCP_VERSIONS } from '../../../contracts/mcp.ts';
import { OPERATION_RESOURCES, OPERATION_TOOLS } from '../../../contracts/mcp-offers.ts';
import { anonymousPolicy, connectionPolicies, type RateDefaults } from '../../../contracts/ratelimit.ts';
import { API_PREFIX, API_VERSION, protectedResourceUrl } from '../../../lib/addresses.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { type Deprecation, isMcpTool, type Operation, TAGS } from '../../../lib/operation.ts';
import { COMPONENT_TYPES } from '../../../lib/schema/snapshot.ts';
import { IDEMPOTENCY_KEY_MAX_CHARS, IDEMPOTENCY_KEY_MIN_CHARS } from '../../../lib/values/idempotency-key.ts';

const RISKS = {
  low: 'Reads, or changes that are easily undone.',
  medium: 'Changes business data; undone by another change.',
  high: 'Deletes, gives access, moves through business processes or changes configuration; may be hard to undo.',
};

const NO_OVERRIDES = {
  client: { connection: null, concurrency: null },
  tenant: { connection: null, tenant: null, daily: null, concurrency: null },
};

const publicDeprecation = ({ since, sunset, replacement }: Deprecation): object => ({ since, sunset, replacement });

export function capabilities(operations: readonly Operation[], baseUrl: string, rates: RateDefaults) {
  const nobody = { tenantId: '', clientId: '', userId: '' };
  const policies = [...connectionPolicies(rates, nobody, NO_OVERRIDES), anonymousPolicy(rates, '')];
  return {
    apiVersion: API_VERSION,
    tags: [...new Set(operations.map((operation) => TAGS[operation.tag].name))],
    operations: operations.map((operation) => ({
      operationId: operation.operationId,
      method: operation.method,
      path: operation.path,
      tag: TAGS[operation.tag].name,
      scopes: typeof operation.scopes === 'string' ? [] : operation.scopes,
      oneOfScopes: operation.oneOfScopes ?? [],
      risk: operation.risk,
      givesAccess: operation.givesAccess ?? null,
      cost: operation.cost,
      mutation: operation.mutation,
      idempotencyKey: operation.mutation ? 'required' : 'none',
      precondition: operation.precondition,
      agentApproval: operation.agentApproval,
      mcpAvailable: isMcpTool(operation),
      stability: operation.stability,
      deprecated: operation.deprecated ? publicDeprecation(operation.deprecated) : null,
    })),
    risks: RISKS,
    limits: {
      takeDefault: LIMITS.take_default,
      takeMax: LIMITS.take_max,
      filterConditionsMax: LIMITS.filter_conditions_max,
      sortMax: LIMITS.sort_max,
      idempotency: {
        minLength: IDEMPOTENCY_KEY_MIN_CHARS,
        maxLength: IDEMPOTENCY_KEY_MAX_CHARS,
        retentionHours: LIMITS.idempotency_retention_hours,
      },
      bodyBytes: LIMITS.body_max_bytes,
      ratePolicies: policies.map(({ name, limit, windowSeconds }) => ({ name, limit, windowSeconds })),
    },
    auth: {
      authorizationServerMetadata: `${baseUrl}/.well-known/oauth-authorization-server`,
      protectedResourceMetadata: protectedResourceUrl(baseUrl, API_PREFIX),
      grantTypes: [
        'authorization_code',
        'client_credentials',
        'refresh_token',
        'urn:ietf:params:oauth:grant-type:device_code',
      ],
    },
    events: { ...EVENT_CAPABILITIES, retentionHours: LIMITS.event_retention_days * 24 },
    metadata: { formatVersion: 1, types: COMPONENT_TYPES },
    mcp: {
      endpoint: baseUrl + MCP_PATH,
      protocolVersions: MCP_VERSIONS,
      protectedResourceMetadata: protectedResourceUrl(baseUrl, MCP_PATH),
      tools: [
        ...OPERATION_TOOLS.map(({ name, operation: { operationId, summary, scopes, cost } }) => ({
          name,
          title: summary,
          operationId,
          scopes,
          cost,
        })),
        ...Object.entries(DOCUMENT_TOOLS).map(([name, { title }]) => ({
          name,
          title,
          operationId: null,
          scopes: [],
          cost: 0,
        })),
      ],
      resources: OPERATION_RESOURCES.map(({ uri, operation: { operationId, scopes } }) => ({
        uri,
        operationId,
        scopes: typeof scopes === 'string' ? [] : scopes,
      })),
      writeLimits: { mutationsAllowed: false },
    },
    cli: { name: '@erp-platform/cli', latestVersion: null },
  };
}
