/**
 * The keys of auth: one ES256 key signs, its predecessors stay published until the last token they signed has
 * expired, and a secret signs cookies. They live in PostgreSQL, so that all nodes share them and nothing is lost with
 * a node; sealed with a key derived from the deployment's secret when there is one. Private parts never leave auth.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose';
import type { StoredKey } from './store/keys.ts';
import type { AuthStore } from './store/store.ts';

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
}

export class Keys {
  readonly #store: AuthStore;
  readonly #secret: Buffer | null;

  constructor(store: AuthStore, secret: string | null) {
    this.#store = store;
    this.#secret = secret === null ? null : Buffer.from(hkdfSync('sha256', secret, '', 'auth key encryption', 32));
  }

  /** Makes what is missing and replaces a signing key that has grown older than `maxAgeSeconds`. True: a new key. */
  async ensure(maxAgeSeconds: number): Promise<boolean> {
    const rotated = await this.#replaceSigningKey(maxAgeSeconds);
    // The cookie key has no age: replacing it would end every interaction that is under way.
    const age = { olderThanSeconds: 100 * 365 * 86_400, keepRetiredSeconds: 0 };
    await this.#store.keys.replace('cookies', age, async () => {
      const kid = randomBytes(16).toString('base64url');
      return { kid, ...this.#seal(kid, { k: randomBytes(32).toString('base64url') }) };
    });
    return rotated;
  }

  async rotate(): Promise<void> {
    await this.#replaceSigningKey(0);
  }

  async load(): Promise<KeyRing> {
    const rows = await this.#store.keys.all();
    const signing = rows.filter((row) => row.purpose === 'signing');
    const oldest = Date.now() - PUBLISHED_AFTER_RETIREMENT_SECONDS * 1000;
    const published = signing.filter((row, i) => i < 2 || (row.retiredAt !== null && row.retiredAt.getTime() > oldest));
    const cookies = rows.filter((row) => row.purpose === 'cookies');
    return {
      generation: [...published, ...cookies].map((row) => row.kid).join(' '),
      signing: atLeastOne(published.map((row) => privateKey(row.kid, this.#open(row)))),
      cookies: atLeastOne(cookies.map((row) => String(this.#open(row)['k']))),
    };
  }

  #replaceSigningKey(olderThanSeconds: number): Promise<boolean> {
    const age = { olderThanSeconds, keepRetiredSeconds: PUBLISHED_AFTER_RETIREMENT_SECONDS };
    return this.#store.keys.replace('signing', age, async () => {
      const { privateKey } = await generateKeyPair(SIGNING_ALG, { extractable: true });
      const jwk = await exportJWK(privateKey);
      const kid = await calculateJwkThumbprint(jwk);
      return { kid, ...this.#seal(kid, { ...jwk, alg: SIGNING_ALG, use: 'sig' }) };
    });
  }

  #seal(kid: string, value: Record<string, unknown>): Pick<StoredKey, 'plain' | 'sealed'> {
    if (!this.#secret) return { plain: value, sealed: null };
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.#secret, nonce).setAAD(Buffer.from(kid));
    const text = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
    return { plain: null, sealed: Buffer.concat([nonce, cipher.getAuthTag(), text]) };
  }

  #open({ kid, plain, sealed }: StoredKey): Record<string, unknown> {
    if (plain) return plain;
    if (!this.#secret || !sealed)
      throw new Error('The keys in the database are sealed: PLATFORM_SECRET must be set as before.');
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.#secret, sealed.subarray(0, 12))
        .setAAD(Buffer.from(kid))
        .setAuthTag(sealed.subarray(12, 28));
      return JSON.parse(Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()]).toString('utf8'));
    } catch (cause) {
      throw new Error('The keys in the database were sealed with another PLATFORM_SECRET.', { cause });
    }
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
