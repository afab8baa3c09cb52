/**
 * Public operations and internal actions of ratelimit, and what its callers must agree on: which policies bind a
 * connection, and which node owns a counter.
 */
import { createHash } from 'node:crypto';
import { Type } from 'typebox';
import { LIMITS } from '../lib/limits.ts';
import { type ActionsOf, defineOperation, nullable } from '../lib/operation.ts';
import type { RateLimitOverrides } from '../lib/schema/snapshot.ts';
import { networkOf } from '../lib/values/network.ts';
import type { GrantState } from './auth.ts';
import type { ServiceDeclaration } from './declaration.ts';
import { RATELIMIT_GUIDANCE } from './guidance/ratelimit.ts';

export interface LeaseRequest {
  /**
   * Counter, such as `connection:<tenant>:<client>:<user>`, `tenant:<tenant>`, `daily:<tenant>`, `anonymous:<network>`,
   * `anonymous:documents:<network>`, `calendar:<tenant>:<user>`.
   */
  key: string;
  /** Units per window that the policy allows. */
  limit: number;
  windowSeconds: number;
  /** Units wanted; 0 asks for the state only. */
  units: number;
  /** Unused units of an earlier lease that go back. */
  returned?: number;
  /** Units the gateway still holds after that; they count against the limit until they are spent. */
  held?: number;
  /** Units that were left when an owner last answered; a new owner of the counter starts from there. */
  known?: number;
}

export interface Lease {
  key: string;
  granted: number;
  /** Units left at the owner after this grant. */
  remaining: number;
  /** Seconds until the bucket is full again. */
  resetSeconds: number;
  /** Seconds until at least one unit is free; 0 when granted. */
  retryAfterSeconds: number;
}

export interface RatelimitActions extends ActionsOf<typeof RATELIMIT_OPERATIONS> {
  /** Remaining units of some counters, leased ones included; spends nothing. */
  'ratelimit.leases.read': { params: { requests: LeaseRequest[] }; result: Lease[] };
  'ratelimit.leases.take': { params: { gateway: string; requests: LeaseRequest[] }; result: Lease[] };
}

type PolicyName = 'connection' | 'tenant' | 'daily' | 'anonymous' | 'documents' | 'calendar';

/** One rate policy as it binds one counter. `limit` units flow back evenly over `windowSeconds`. */
export interface RatePolicy {
  readonly name: PolicyName;
  readonly key: string;
  readonly limit: number;
  readonly windowSeconds: number;
}

export interface RateDefaults {
  readonly connection: number;
  readonly tenant: number;
  readonly anonymous: number;
  readonly daily: number;
  readonly concurrency: number;
  readonly concurrencyCostly: number;
}

/** From this cost on an operation counts as costly for the concurrency limit. */
export const COSTLY_UNITS = 5;

/** Units, or requests in flight, that a limit can be set to. */
export const RATE_LIMIT_MAX = 1_000_000_000_000;

/** Operations that a repair of the configuration takes in a minute, with room: ten times retrieve, validate, deploy. */
const REPAIR_UNITS = 300;

/**
 * The least to which a tenant can narrow itself, where it has more: a user who may repair the configuration gets
 * through, at any time of the day.
 */
export const OWN_MINIMUM: Readonly<Record<keyof RateLimitOverrides, number>> = {
  connection: REPAIR_UNITS,
  tenant: REPAIR_UNITS,
  daily: REPAIR_UNITS * 24 * 60,
  concurrency: 5,
};

/** The most that a tenant can have: what the operator allows it, else the deployment's default. */
export function ceilings(
  defaults: RateDefaults,
  operator: RateLimitOverrides | undefined,
): Record<keyof RateLimitOverrides, number> {
  return {
    connection: operator?.connection ?? defaults.connection,
    tenant: operator?.tenant ?? defaults.tenant,
    daily: operator?.daily ?? defaults.daily,
    concurrency: operator?.concurrency ?? defaults.concurrency,
  };
}

const narrowest = (ceiling: number, ...limits: (number | null)[]): number =>
  Math.min(ceiling, ...limits.map((limit) => limit ?? Number.POSITIVE_INFINITY));

/** Policies of one connection, narrowest first; what tenant and client set can only narrow. */
export function connectionPolicies(
  defaults: RateDefaults,
  who: { tenantId: string; clientId: string; userId: string },
  overrides: GrantState['rateLimits'],
): [connection: RatePolicy, tenant: RatePolicy, daily: RatePolicy] {
  const { operator, tenant, client } = overrides;
  const most = ceilings(defaults, operator);
  return [
    {
      name: 'connection',
      key: `connection:${who.tenantId}:${who.clientId}:${who.userId}`,
      limit: narrowest(most.connection, tenant.connection, client.connection),
      windowSeconds: 60,
    },
    {
      name: 'tenant',
      key: `tenant:${who.tenantId}`,
      limit: narrowest(most.tenant, tenant.tenant),
      windowSeconds: 60,
    },
    {
      name: 'daily',
      key: `daily:${who.tenantId}`,
      limit: narrowest(most.daily, tenant.daily),
      windowSeconds: 86_400,
    },
  ];
}

/** The policy of callers without a valid token, per network (IPv6: the first 48 bits). */
export function anonymousPolicy(defaults: RateDefaults, ip: string): RatePolicy {
  return { name: 'anonymous', key: `anonymous:${networkOf(ip)}`, limit: defaults.anonymous, windowSeconds: 60 };
}

/** The policy of reading documents, per network: apart from the other one, so that a reader can still sign in. */
export function documentsPolicy(defaults: RateDefaults, ip: string): RatePolicy {
  return { ...anonymousPolicy(defaults, ip), name: 'documents', key: `anonymous:documents:${networkOf(ip)}` };
}

/** The policy of a user's calendar link, whichever programs have it. */
export const calendarPolicy = ({ tenantId, userId }: { tenantId: string; userId: string }): RatePolicy => ({
  name: 'calendar',
  key: `calendar:${tenantId}:${userId}`,
  limit: LIMITS.calendar_link_reads_per_hour,
  windowSeconds: 3_600,
});

/** Units that a request pays, after its answer, for the time that it held connections to the database. */
export const databaseUnits = (milliseconds: number): number =>
  Math.max(0, Math.ceil((milliseconds - LIMITS.database_included_ms) / LIMITS.database_unit_ms));

/** Units that a request pays for a long answer, which takes time to write, to compress and to send. */
export const answerUnits = (bytes: number): number =>
  Math.max(0, Math.ceil((bytes - LIMITS.answer_included_bytes) / (1024 * 1024))) * LIMITS.answer_mib_units;

/** True for the counter of a network, of which callers can have any number. */
export const isAnonymous = (key: string): boolean => key.startsWith('anonymous:');

/** Requests in flight that one connection may have in one gateway. */
export function concurrencyLimits(
  defaults: RateDefaults,
  { operator, tenant, client }: GrantState['rateLimits'],
): { all: number; costly: number } {
  const all = narrowest(ceilings(defaults, operator).concurrency, tenant.concurrency, client.concurrency);
  return { all, costly: Math.min(all, defaults.concurrencyCostly) };
}

/** The node that owns a counter: rendezvous hashing, so that a node that comes or goes moves only its own counters. */
export function ownerOf(key: string, nodes: readonly string[]): string | undefined {
  let owner: string | undefined;
  let highest = '';
  for (const node of nodes) {
    const weight = createHash('md5').update(`${node} ${key}`).digest('hex');
    if (weight > highest) {
      highest = weight;
      owner = node;
    }
  }
  return owner;
}

const count = (description: string) => Type.Integer({ minimum: 0, description });

const LimitsSchema = Type.Object(
  {
    policies: Type.Array(
      Type.Object({
        name: Type.String({ description: 'connection, tenant, daily or anonymous.' }),
        limit: count('Cost units per window.'),
        windowSeconds: count('Length of the window.'),
        used: count('Units spent and not yet flowed back.'),
        remaining: count('Units that can be spent now.'),
        resetSeconds: count('Seconds until the whole limit is available again.'),
      }),
    ),
    daily: Type.Object({
      limit: count('Cost units of the tenant in 24 hours.'),
      used: count('Units spent and not yet flowed back.'),
      remaining: count('Units that can be spent now.'),
    }),
    concurrency: Type.Object({
      limit: count('Requests in flight per connection and gateway.'),
      costlyLimit: count('The same for operations that cost 5 units or more.'),
    }),
    storage: Type.Object({
      usedBytes: count('Bytes of the tenant in the database.'),
      limitBytes: Type.Union([Type.Integer(), Type.Null()], { description: 'null: no limit.' }),
      files: nullable(
        Type.Object({
          usedBytes: count('Bytes of contents of files, and of open uploads.'),
          limitBytes: Type.Integer(),
        }),
      ),
    }),
    costs: Type.Record(Type.String(), Type.Integer(), { description: 'Cost units by operationId.' }),
  },
  { title: 'ConnectionLimits' },
);

const RATELIMIT_OPERATIONS = [
  defineOperation({
    operationId: 'me.limits.get',
    method: 'GET',
    path: '/me/limits',
    tag: 'me',
    summary: 'Get the limits of this connection',
    description: 'All rate policies that bind the caller with what is used and left, and the cost of every operation.',
    scopes: 'authenticated',
    cost: 0,
    freePoll: true,
    reportsLimits: true,
    response: {
      status: 200,
      description: 'Limits and what is left of them.',
      schema: LimitsSchema,
      example: {
        policies: [
          { name: 'connection', limit: 3000, windowSeconds: 60, used: 13, remaining: 2987, resetSeconds: 1 },
          { name: 'tenant', limit: 30000, windowSeconds: 60, used: 40, remaining: 29960, resetSeconds: 1 },
        ],
        daily: { limit: 10000000, used: 1204, remaining: 9998796 },
        concurrency: { limit: 50, costlyLimit: 8 },
        storage: {
          usedBytes: 8388608,
          limitBytes: null,
          files: { usedBytes: 48213, limitBytes: LIMITS.files_of_tenant_max_bytes },
        },
        costs: { 'data.records.list': 1, 'data.records.create': 2 },
      },
    },
    errors: [],
    action: 'ratelimit.limits.get',
  }),
] as const;

export const SERVICE = {
  purpose: 'Counters of all gateways: every counter lives in one process, chosen by its key.',
  listens: 'health',
  awaitedByGateway: false,
  kubernetes: {
    replicas: { min: 2, max: 3 },
    connections: 2,
    requests: { cpu: '100m', memory: '192Mi' },
    limits: { cpu: '1', memory: '256Mi' },
  },
  operations: RATELIMIT_OPERATIONS,
  guidance: RATELIMIT_GUIDANCE,
  calls: ['auth.grants.check', 'files.usage.get', 'ratelimit.leases.read'],
  repeatable: ['ratelimit.leases.read'],
} as const satisfies ServiceDeclaration<typeof RATELIMIT_OPERATIONS>;
