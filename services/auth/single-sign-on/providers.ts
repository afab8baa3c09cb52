/** The OpenID provider of a username. Source: docs/reference/authentication.md#single-sign-on. */
import type { IdentityProviderMeta } from '../../../lib/schema/snapshot.ts';
import { domainOf } from '../../../lib/values/mail-domains.ts';
import type { Clients } from '../clients.ts';
import type { AuthStore } from '../store/store.ts';
import type { TypedName } from '../usernames.ts';

/** A provider of a tenant. */
export interface TenantProvider {
  readonly tenantId: string;
  readonly meta: IdentityProviderMeta;
}

interface Parts {
  readonly store: Pick<AuthStore, 'domains'>;
  readonly clients: Pick<Clients, 'identityProviders'>;
}

/**
 * The provider that speaks for the domain of a typed name, whether or not there is such a user; null: none. A domain
 * counts where it is verified for the tenant of the provider. `clientTenantId`: of a client of one tenant, whose users alone use it.
 */
export async function providerOf(
  { store, clients }: Parts,
  { domain, tenantId: named }: Pick<TypedName, 'domain' | 'tenantId'>,
  clientTenantId: string | null,
): Promise<TenantProvider | null> {
  if (domain === null) return null;
  const tenantId = await store.domains.tenantOf(domain);
  if (tenantId === null || (named ?? tenantId) !== tenantId || (clientTenantId ?? tenantId) !== tenantId) return null;
  const providers = await clients.identityProviders(tenantId);
  const meta = providers.find(({ active, domains }) => active && domains.includes(domain));
  return meta ? { tenantId, meta } : null;
}

/** The provider of a user's domain. */
export const providerOfUser = (
  parts: Parts,
  { tenantId, username }: { tenantId: string; username: string },
): Promise<TenantProvider | null> => providerOf(parts, { domain: domainOf(username), tenantId }, tenantId);

/** True when a username is in a domain of the provider. */
export async function speaksFor(parts: Parts, { tenantId, meta }: TenantProvider, username: string): Promise<boolean> {
  const found = await providerOfUser(parts, { tenantId, username });
  return found?.meta.apiName === meta.apiName;
}
