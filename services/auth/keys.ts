/**
 * The keys of auth: one ES256 key signs, its predecessors stay published until the last token they signed has
 * expired, and a secret signs cookies. They live in PostgreSQL, so that all nodes share them and nothing is lost with
 * a node; sealed by the vault. Private parts never leave auth.
 */

import { randomBytes } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose';
import { platformTime } from '../../lib/values/clock.ts';
import type { AuthStore } from './store/store.ts';
import type { Vault } from './vault.ts';

export const SIGNING_ALG = 'ES256';

/** Published after its retirement: longer than the longest access token lives. */
const PUBLISHED_AFTER_RETIREMENT_SECONDS = 2 * 3600;

/** A public signing key as a JWK (RFC 7517). */
export type PublicKey = Record<'kty' | 'crv' | 'x' | 'y' | 'kid' | 'alg' | 'use', string>;
type PrivateKey = PublicKey & { d: string };

/** Opened keys of one moment. `generation` changes whenever any of them does. */
export interface KeyRing {
  generation: string;
  /** The one that signs first. */
  signing: readonly [PrivateKey, ...PrivateKey[]];
  cookies: readonly [string, ...string[]];
  /** Seals the secrets of authenticator apps. */
  factors: string;
}

export class Keys {
  readonly #store: AuthStore;
  readonly #vault: Vault;

  constructor(store: AuthStore, vault: Vault) {
    this.#store = store;
    this.#vault = vault;
  }

  /** Makes what is missing and replaces a signing key that has grown older than `maxAgeSeconds`. True: a new key. */
  async ensure(maxAgeSeconds: number): Promise<boolean> {
    const rotated = await this.#replaceSigningKey(maxAgeSeconds);
    // These keys have no age: a new cookie key would end every interaction that is under way, a new key of the factors
    // every authenticator app.
    const age = { olderThanSeconds: 100 * 365 * 86_400, keepRetiredSeconds: 0 };
    for (const purpose of ['cookies', 'factors'] as const)
      await this.#store.keys.replace(purpose, age, async () => {
        const kid = randomBytes(16).toString('base64url');
        return { kid, ...this.#vault.seal(kid, { k: randomBytes(32).toString('base64url') }) };
      });
    return rotated;
  }

  async rotate(): Promise<void> {
    await this.#replaceSigningKey(0);
  }

  async load(): Promise<KeyRing> {
    const rows = await this.#store.keys.all();
    const signing = rows.filter((row) => row.purpose === 'signing');
    const oldest = platformTime() - PUBLISHED_AFTER_RETIREMENT_SECONDS * 1000;
    const published = signing.filter((row, i) => i < 2 || (row.retiredAt !== null && row.retiredAt.getTime() > oldest));
    const cookies = rows.filter((row) => row.purpose === 'cookies');
    const [factors] = atLeastOne(rows.filter((row) => row.purpose === 'factors'));
    return {
      generation: [...published, ...cookies].map((row) => row.kid).join(' '),
      signing: atLeastOne(published.map((row) => privateKey(row.kid, this.#vault.open(row.kid, row)))),
      cookies: atLeastOne(cookies.map((row) => String(this.#vault.open(row.kid, row)['k']))),
      factors: String(this.#vault.open(factors.kid, factors)['k']),
    };
  }

  /** Seals with the deployment's present secret what is kept otherwise; returns how many keys it has changed. */
  reseal(): Promise<number> {
    return this.#store.keys.change((key) =>
      this.#vault.isCurrent(key.kid, key)
        ? null
        : { kid: key.kid, ...this.#vault.seal(key.kid, this.#vault.open(key.kid, key)) },
    );
  }

  #replaceSigningKey(olderThanSeconds: number): Promise<boolean> {
    const age = { olderThanSeconds, keepRetiredSeconds: PUBLISHED_AFTER_RETIREMENT_SECONDS };
    return this.#store.keys.replace('signing', age, async () => {
      const { privateKey } = await generateKeyPair(SIGNING_ALG, { extractable: true });
      const jwk = await exportJWK(privateKey);
      const kid = await calculateJwkThumbprint(jwk);
      return { kid, ...this.#vault.seal(kid, { ...jwk, alg: SIGNING_ALG, use: 'sig' }) };
    });
  }
}

/** The public part of a ring: a list of what may leave auth, so that nothing else can. */
export const publicKeys = ({ signing }: KeyRing): PublicKey[] =>
  signing.map(({ kty, crv, x, y, kid, alg, use }) => ({ kty, crv, x, y, kid, alg, use }));

function privateKey(kid: string, jwk: Record<string, unknown>): PrivateKey {
  const member = (name: string): string => {
    const value = jwk[name];
    if (typeof value !== 'string') throw new Error(`The signing key ${kid} in the database has no "${name}".`);
    return value;
  };
  return {
    kid,
    kty: member('kty'),
    crv: member('crv'),
    x: member('x'),
    y: member('y'),
    d: member('d'),
    alg: member('alg'),
    use: member('use'),
  };
}

function atLeastOne<T>([first, ...others]: readonly T[]): [T, ...T[]] {
  if (first === undefined) throw new Error('The database holds no key of auth: start the service, which makes them.');
  return [first, ...others];
}
