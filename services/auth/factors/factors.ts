/** Passkeys and second factors at one public address, with everything that they need. */
import type { KeyRing } from '../keys.ts';
import type { UserKey } from '../store/factors.ts';
import type { AuthStore } from '../store/store.ts';
import { Authenticators } from './authenticator.ts';
import { Passkeys } from './passkeys.ts';
import { demandsSecondFactor, type PolicyParts } from './policy.ts';

export type SecondFactorParts = PolicyParts;

export class SecondFactors {
  readonly passkeys: Passkeys;
  readonly authenticators: Authenticators;
  readonly #parts: SecondFactorParts;

  constructor(store: AuthStore, issuer: string, ring: KeyRing, parts: SecondFactorParts) {
    this.passkeys = new Passkeys(store, { issuer, key: ring.cookies[0] });
    this.authenticators = new Authenticators(store, ring.factors);
    this.#parts = parts;
  }

  /** True when the tenant requires a second factor of this user. */
  isDemanded(user: UserKey): Promise<boolean> {
    return demandsSecondFactor(this.#parts, user);
  }
}
