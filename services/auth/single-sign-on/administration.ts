/** Operators' settings and views: secrets of OpenID providers, whether one is usable, and connected users. */
import type { AuthActions } from '../../../contracts/auth.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { IdentityProviderMeta } from '../../../lib/schema/snapshot.ts';
import type { Clients } from '../clients.ts';
import type { AuthStore } from '../store/store.ts';
import { type OpenIdClient, ProviderError } from './openid.ts';
import type { ProviderSecrets } from './secrets.ts';
import { callbackPath } from './single-sign-on.ts';

const SECRET = /^[\x20-\x7e]{1,1000}$/;

interface Parts {
  readonly store: AuthStore;
  readonly clients: Clients;
  readonly openid: OpenIdClient;
  readonly secrets: ProviderSecrets;
  baseUrl(): string;
}

type Check = AuthActions['auth.identityProviders.check']['result'];

export class SingleSignOnAdministration {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Throws PARAMETER_INVALID when the tenant has no such provider, or the text can be no secret. */
  async setSecret(tenantId: string, apiName: string, secret: string): Promise<{ issuer: string; clientId: string }> {
    const { issuer, clientId } = await this.#provider(tenantId, apiName);
    if (typeof secret !== 'string' || !SECRET.test(secret))
      throw new PlatformError('PARAMETER_INVALID', 'A secret is 1 to 1,000 printable characters of ASCII.');
    await this.#parts.secrets.set({ tenantId, apiName, issuer, clientId }, secret);
    return { issuer, clientId };
  }

  /** Obstacles to a provider's first sign-in. Asks the provider. */
  async check(tenantId: string, apiName: string): Promise<Check> {
    const meta = await this.#provider(tenantId, apiName);
    const { issuer, clientId, active } = meta;
    const verified = new Set((await this.#parts.store.domains.of(tenantId)).map(({ domain }) => domain));
    const secret = await this.#parts.store.providerSecrets.find({ tenantId, apiName, issuer, clientId });
    return {
      issuer,
      clientId,
      active,
      redirectUri: this.#parts.baseUrl() + (await callbackPath(this.#parts.clients, { tenantId, apiName })),
      secretSet: secret !== null,
      domains: meta.domains.map((domain) => ({ domain, verified: verified.has(domain) })),
      discovery: await this.#discovery(issuer),
    };
  }

  async #discovery(issuer: string): Promise<Check['discovery']> {
    try {
      const metadata = await this.#parts.openid.discover(issuer);
      return {
        ok: true,
        reason: null,
        authorizationEndpoint: metadata.authorization_endpoint ?? null,
        tokenEndpoint: metadata.token_endpoint ?? null,
      };
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      return { ok: false, reason: error.message, authorizationEndpoint: null, tokenEndpoint: null };
    }
  }

  async #provider(tenantId: string, apiName: string): Promise<IdentityProviderMeta> {
    const found = (await this.#parts.clients.identityProviders(tenantId)).find((meta) => meta.apiName === apiName);
    if (!found) throw new PlatformError('PARAMETER_INVALID', 'The tenant has no identity provider of this name.');
    return found;
  }
}
