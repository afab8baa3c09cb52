/** The secrets by which OpenID providers know the platform, sealed like the keys of auth. */

import type { KeptSecret, SecretOwner } from '../store/provider-secrets.ts';
import type { AuthStore } from '../store/store.ts';
import type { Vault } from '../vault.ts';

/** A sealed secret opens for its provider alone. */
const sealId = ({ tenantId, apiName, issuer, clientId }: SecretOwner): string =>
  JSON.stringify(['identity provider', tenantId, apiName, issuer, clientId]);

export class ProviderSecrets {
  readonly #store: AuthStore;
  readonly #vault: Vault;

  constructor(store: AuthStore, vault: Vault) {
    this.#store = store;
    this.#vault = vault;
  }

  /** null: none was set for this issuer and client id. */
  async of(owner: SecretOwner): Promise<string | null> {
    const kept = await this.#store.providerSecrets.find(owner);
    return kept && String(this.#vault.open(sealId(owner), kept)['secret']);
  }

  async set(owner: SecretOwner, secret: string): Promise<void> {
    await this.#store.providerSecrets.save({ ...owner, ...this.#vault.seal(sealId(owner), { secret }) });
  }

  /** Seals with the deployment's present secret what is kept otherwise; returns how many secrets it has changed. */
  reseal(): Promise<number> {
    return this.#store.providerSecrets.change((secret: KeptSecret) => {
      const id = sealId(secret);
      return this.#vault.isCurrent(id, secret) ? null : this.#vault.seal(id, this.#vault.open(id, secret));
    });
  }
}
