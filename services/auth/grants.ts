/** Liveness of grants, with what the gateway must know about tenant and client of each. */
import type { AuthActions, GrantState } from '../../contracts/auth.ts';
import { isGrantOf } from '../../lib/access/client-marks.ts';
import type { RateLimitOverrides, SecondFactorPolicy } from '../../lib/schema/snapshot.ts';
import type { Clients, KnownClient, Tenant } from './clients.ts';
import type { LiveGrant } from './store/grants.ts';
import type { AuthStore } from './store/store.ts';

export type GrantCheck = AuthActions['auth.grants.check']['params'];

const NO_OVERRIDES: RateLimitOverrides = { connection: null, tenant: null, daily: null, concurrency: null };

/** For each grant, in the order of the request, whether it is live; a grant of another user, client or tenant is inactive. */
export async function checkGrants(
  store: AuthStore,
  clients: Clients,
  { grants, unused = false }: GrantCheck,
  secondFactor: SecondFactorPolicy,
): Promise<GrantState[]> {
  const byTenant = Map.groupBy(grants, (grant) => grant.tenantId);
  const live = new Map<string, LiveGrant>();
  await Promise.all(
    [...byTenant].map(async ([tenantId, requested]) => {
      const found = await store.grants.live(
        tenantId,
        requested.map((grant) => grant.grantId),
        !unused,
      );
      for (const grant of found) live.set(`${tenantId} ${grant.grantId}`, grant);
    }),
  );
  return Promise.all(
    grants.map(async (grant) => {
      const found = live.get(`${grant.tenantId} ${grant.grantId}`);
      const [tenant, client] = await Promise.all([
        clients.tenant({ tenantId: grant.tenantId }),
        clients.find(grant.clientId, grant.tenantId),
      ]);
      const usable = client !== null && (client.tenantId === null || client.tenantId === grant.tenantId);
      const active = tenant !== null && usable && isGrantOf(found, grant, client);
      const required = tenant && ((await clients.secondFactor(tenant.id)) ?? secondFactor) !== 'off';
      // A client that acts for itself has no person who could sign in. An agent that acts for a person does not bypass the sign-in.
      const stepUp = required === true && found?.integration === false;
      return grantState(grant.grantId, { active, stepUp }, tenant, usable ? client : null);
    }),
  );
}

function grantState(
  grantId: string,
  { active, stepUp }: Pick<GrantState, 'active' | 'stepUp'>,
  tenant: Tenant | null,
  client: KnownClient | null,
): GrantState {
  const ofClient = client?.meta?.rateLimits ?? NO_OVERRIDES;
  return {
    grantId,
    active,
    tenantSuspended: tenant?.suspended ?? false,
    clientActive: client?.active ?? false,
    clientName: client?.name ?? '',
    agent: client?.meta?.agent ?? false,
    stepUp,
    ipRanges: [...(client?.meta?.ipRanges ?? [])],
    rateLimits: {
      operator: tenant?.operatorLimits ?? NO_OVERRIDES,
      tenant: tenant?.rateLimits ?? NO_OVERRIDES,
      client: { connection: ofClient.connection, concurrency: ofClient.concurrency },
    },
  };
}
