/** `GET /me/limits`: every policy that binds the caller, what is left of it, and what operations cost. */
import type { Config } from '../../config/env.ts';
import { type ActionContext, type Caller, call } from '../../contracts/call.ts';
import { OPERATIONS, type OperationOutput } from '../../contracts/operations.ts';
import { concurrencyLimits, connectionPolicies, ownerOf, type RatePolicy } from '../../contracts/ratelimit.ts';
import { requestContext } from '../../lib/context.ts';
import type { OperationReply } from '../../lib/operation.ts';
import type { StorageStore } from './store.ts';

const NO_OVERRIDES = {
  client: { connection: null, concurrency: null },
  tenant: { connection: null, tenant: null, daily: null, concurrency: null },
};

/** Answers me.limits.get. `nodes`: where the counters live. */
export async function describeLimits(
  ctx: ActionContext<unknown>,
  config: Config,
  nodes: readonly string[],
  storage: StorageStore,
): Promise<OperationReply & { body: OperationOutput<'me.limits.get'> }> {
  const { tenantId, clientId, userId, grantId } = requestContext(ctx);
  const grants = await call(ctx, 'auth.grants.check', { grants: [{ tenantId, grantId, clientId, userId }] });
  const overrides = grants[0]?.rateLimits ?? NO_OVERRIDES;
  const policies = connectionPolicies(config.rateLimits, { tenantId, clientId, userId }, overrides);
  const [described, usedBytes, files] = await Promise.all([
    Promise.all(policies.map((policy) => describePolicy(ctx, policy, nodes))),
    storage.usedBytes(tenantId),
    call(ctx, 'files.usage.get', { tenantId }).catch(() => null), // null: files is away
  ]);
  const daily = described.find((policy) => policy.name === 'daily');
  if (!daily) throw new Error('A connection has no daily policy.');
  const concurrency = concurrencyLimits(config.rateLimits, overrides);
  return {
    body: {
      policies: described,
      daily: { limit: daily.limit, used: daily.used, remaining: daily.remaining },
      concurrency: { limit: concurrency.all, costlyLimit: concurrency.costly },
      storage: { usedBytes, limitBytes: null, files },
      costs: Object.fromEntries(OPERATIONS.map(({ operationId, cost }) => [operationId, cost])),
    },
  };
}

async function describePolicy(ctx: Caller, policy: RatePolicy, nodes: readonly string[]) {
  const { name, key, limit, windowSeconds } = policy;
  const nodeID = ownerOf(key, nodes);
  const [lease] = await call(
    ctx,
    'ratelimit.leases.read',
    { requests: [{ key, limit, windowSeconds, units: 0 }] },
    nodeID === undefined ? {} : { nodeID },
  );
  if (!lease) throw new Error(`The ratelimit service gave no state of the counter ${key}.`);
  const { remaining, resetSeconds } = lease;
  return { name, limit, windowSeconds, used: Math.max(0, limit - remaining), remaining, resetSeconds };
}
