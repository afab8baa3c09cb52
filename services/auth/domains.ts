/** Mail domains of tenants, as operators add and remove them. Source: docs/reference/authentication.md#usernames. */
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { domainName } from '../../lib/values/mail-domains.ts';
import type { Clients } from './clients.ts';
import type { AuthStore } from './store/store.ts';

export class TenantDomains {
  readonly #store: AuthStore;
  readonly #clients: Clients;

  constructor(store: AuthStore, clients: Clients) {
    this.#store = store;
    this.#clients = clients;
  }

  /** Throws PARAMETER_INVALID for what is no domain, an unknown tenant, and a domain of another tenant. */
  async add(tenantId: string, text: string): Promise<{ domain: string; usersElsewhere: number }> {
    const domain = valid(text);
    if (!(await this.#clients.tenant({ tenantId })))
      throw new PlatformError('PARAMETER_INVALID', 'There is no such tenant.');
    if (!(await this.#store.domains.add(tenantId, domain)))
      throw new PlatformError('PARAMETER_INVALID', 'Another tenant has this domain: remove it there first.');
    return { domain, usersElsewhere: await this.#store.credentials.inDomainElsewhere(tenantId, domain) };
  }

  remove(tenantId: string, text: string): Promise<boolean> {
    return this.#store.domains.remove(tenantId, valid(text));
  }

  async list(tenantId: string): Promise<string[]> {
    return (await this.#store.domains.of(tenantId)).map(({ domain }) => domain);
  }
}

function valid(text: string): string {
  const domain = domainName(text);
  if (domain === null) throw new PlatformError('PARAMETER_INVALID', 'This is not a domain, such as example.com.');
  return domain;
}
