/**
 * Resolves a typed username. Tenants choose the usernames of their users without asking each other, so the same name
 * may be a user of several. A name in a domain that an operator has verified for a tenant means that tenant's user; any
 * other one is typed with the key of its tenant, as `tenant\name`. So a name does not reveal whether another tenant
 * has it, and no tenant can take it from another. Source: docs/decisions/usernames-by-domain.md.
 */
import { domainOf } from '../../lib/values/mail-domains.ts';
import { USERNAME_MAX_CHARS } from '../../lib/values/user-names.ts';
import type { Clients } from './clients.ts';
import type { Credential } from './store/credentials.ts';
import type { AuthStore } from './store/store.ts';

/** Matches no tenant. */
export const NO_TENANT = '00000000-0000-0000-0000-000000000000';

const WITH_TENANT = /^([a-z][a-z0-9]{1,30})\\(.+)$/is;

export interface TypedName {
  username: string;
  /** Of the name; null when it has none. */
  domain: string | null;
  /** The tenant that was named; null when none was. */
  tenantId: string | null;
}

/** Parses a typed username. */
export async function typedName(clients: Pick<Clients, 'tenant'>, text: string): Promise<TypedName> {
  const typed = text.trim().slice(0, USERNAME_MAX_CHARS);
  const [, key, name] = WITH_TENANT.exec(typed) ?? [];
  const username = (name ?? typed).trim();
  if (key === undefined) return { username, domain: domainOf(username), tenantId: null };
  const tenant = await clients.tenant({ key: key.toLowerCase() });
  return { username, domain: domainOf(username), tenantId: tenant?.id ?? NO_TENANT };
}

/** A user's sign-in name: with the key of the tenant, unless the domain of the name is the tenant's. */
export async function signInName(
  { username, tenantId }: Pick<Credential, 'username' | 'tenantId'>,
  { store, clients }: { store: Pick<AuthStore, 'domains'>; clients: Pick<Clients, 'tenant'> },
): Promise<string> {
  const domain = domainOf(username);
  const owner = domain === null ? null : await store.domains.tenantOf(domain);
  if (owner === tenantId) return username;
  const tenant = await clients.tenant({ tenantId });
  return tenant ? `${tenant.key}\\${username}` : username;
}
