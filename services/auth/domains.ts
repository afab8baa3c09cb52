/** Mail domains of tenants, as operators add and remove them. Source: docs/reference/authentication.md#usernames. */
import { PlatformError, violation } from '../../lib/errors/platform-error.ts';
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
    if (!(await this.#store.domains.add(tenantId, domain))) {
      const taken = ofAnother(domain, await this.#ownerOf(domain));
      throw new PlatformError('PARAMETER_INVALID', taken, {
        errors: [violation('/domain', 'PARAMETER_INVALID', taken)],
      });
    }
    return { domain, usersElsewhere: await this.#store.credentials.inDomainElsewhere(tenantId, domain) };
  }

  /**
   * Throws PARAMETER_INVALID with every domain, by its place, that cannot be added to the tenant of the key, which need not be
   * there yet.
   */
  async check(key: string, texts: readonly string[]): Promise<void> {
    const problems = await Promise.all(
      texts.map(async (text, index) => {
        const domain = domainName(text);
        const owner = domain === null ? null : await this.#ownerOf(domain);
        const problem =
          domain === null
            ? `${text.slice(0, SHOWN_CHARS)} is not a domain, such as example.com.`
            : owner !== null && owner !== key && ofAnother(domain, owner);
        return problem ? [violation(`/domains/${index}`, 'PARAMETER_INVALID', problem)] : [];
      }),
    );
    const errors = problems.flat();
    if (errors.length > 0)
      throw new PlatformError('PARAMETER_INVALID', `The tenant ${key} cannot have all of these domains.`, { errors });
  }

  /** Key of the tenant that has the domain, or its id while the tenant is not known; null: none has it. */
  async #ownerOf(domain: string): Promise<string | null> {
    const tenantId = await this.#store.domains.tenantOf(domain);
    return tenantId === null ? null : ((await this.#clients.tenant({ tenantId }))?.key ?? tenantId);
  }

  remove(tenantId: string, text: string): Promise<boolean> {
    return this.#store.domains.remove(tenantId, valid(text));
  }

  async list(tenantId: string): Promise<string[]> {
    return (await this.#store.domains.of(tenantId)).map(({ domain }) => domain);
  }
}

/** Of what was given for a domain, in an error. */
const SHOWN_CHARS = 100;

const ofAnother = (domain: string, owner: string | null): string =>
  `${domain} is a domain of ${owner === null ? 'another tenant' : `the tenant ${owner}`}: remove it there first.`;

function valid(text: string): string {
  const domain = domainName(text);
  if (domain === null) throw new PlatformError('PARAMETER_INVALID', 'This is not a domain, such as example.com.');
  return domain;
}
