/**
 * OpenID Connect claims about a person, in ID tokens and at the userinfo endpoint.
 * Source: docs/reference/authentication.md#who-signed-in.
 */
import type { UserIdentity } from '../../../contracts/data.ts';
import { domainOf } from '../../../lib/values/mail-domains.ts';
import type { Clients } from '../clients.ts';
import type { Credential } from '../store/credentials.ts';
import type { AuthStore } from '../store/store.ts';

/** Claims by scope, as the provider takes them. */
export const CLAIMS = {
  acr: null,
  amr: null,
  auth_time: null,
  openid: ['sub', 'tenant_id', 'acr', 'amr', 'auth_time'],
  profile: ['name', 'preferred_username', 'locale', 'zoneinfo', 'updated_at'],
  email: ['email', 'email_verified'],
};

export interface ClaimParts {
  readonly store: AuthStore;
  readonly clients: Clients;
  /** The user's record; null when it is gone. */
  user(of: { tenantId: string; userId: string }): Promise<UserIdentity | null>;
}

/** The claims of these scopes. What the record does not have is left out. */
export async function claimsOf(
  parts: ClaimParts,
  { tenantId, userId }: Pick<Credential, 'tenantId' | 'userId'>,
  scopes: readonly string[],
): Promise<Record<string, unknown>> {
  const claims = { sub: userId, tenant_id: tenantId };
  const [profile, mail] = [scopes.includes('profile'), scopes.includes('email')];
  if (!profile && !mail) return claims;
  const user = await parts.user({ tenantId, userId });
  if (!user) return claims;
  return {
    ...claims,
    ...(profile ? await profileOf(parts, tenantId, user) : {}),
    ...(mail && user.email !== null
      ? { email: user.email, email_verified: await isVerified(parts.store, { tenantId, userId }, user.email) }
      : {}),
  };
}

async function profileOf({ clients }: ClaimParts, tenantId: string, user: UserIdentity): Promise<object> {
  const { displayName, username, locale, timezone, updatedAt } = user;
  const tenant = locale === null || timezone === null ? await clients.tenant({ tenantId }) : null;
  return {
    name: displayName,
    preferred_username: username,
    locale: locale ?? tenant?.locale,
    zoneinfo: timezone ?? tenant?.timezone,
    updated_at: updatedAt,
  };
}

/**
 * The tenant has proved to own the domain, so it says who has which address there; an address that its user has yet to
 * confirm is only text in the record.
 */
async function isVerified(
  store: AuthStore,
  { tenantId, userId }: { tenantId: string; userId: string },
  email: string,
): Promise<boolean> {
  const domain = domainOf(email);
  if (domain === null || (await store.domains.tenantOf(domain)) !== tenantId) return false;
  const credential = await store.credentials.find(tenantId, userId);
  return credential?.email.toLowerCase() === email.toLowerCase();
}
