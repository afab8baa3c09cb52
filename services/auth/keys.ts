/**
 * The keys of auth: one ES256 key signs, its predecessors stay published until the last token they signed has
 * expired, and a secret signs cookies. They live in PostgreSQL, so that all nodes share them and nothing is lost with
 * a node; sealed with a key derived from the deployment's secret when there is one. Private parts never leave auth.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK } from 'jose';
import type { StoredKey } from './store/keys.ts';
import type { AuthStore } from './store/store.ts';

export const SIGNING_ALG = 'ES256';

/** Published after its retirement: longer than the longest access token lives. */
const PUBLISHED_AFTER_RETIREMENT_SECONDS = 2 * 3600;

/** Opened keys of one moment. `generation` changes whenever any of them does. */
export interface KeyRing {
  generation: string;
  /** Private JWKs, the signing one first. */
  signing: (JWK & { kid: string })[];
  cookies: string[];
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
      signing: published.map((row) => ({ ...(this.#open(row) as unknown as JWK), kid: row.kid })),
      cookies: cookies.map((row) => String(this.#open(row)['k'])),
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

  #open(row: StoredKey): Record<string, unknown> {
    if (row.plain) return row.plain;
    if (!this.#secret) throw new Error('The keys in the database are sealed: PLATFORM_SECRET must be set as before.');
    const sealed = row.sealed!;
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.#secret, sealed.subarray(0, 12))
        .setAAD(Buffer.from(row.kid))
        .setAuthTag(sealed.subarray(12, 28));
      return JSON.parse(Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()]).toString('utf8'));
    } catch (cause) {
      throw new Error('The keys in the database were sealed with another PLATFORM_SECRET.', { cause });
    }
  }
}

const PUBLIC_MEMBERS = ['kty', 'crv', 'x', 'y', 'kid', 'alg', 'use'] as const;

/** The public part of a ring, as JWKS keys (RFC 7517). A list of what may leave, so that nothing else can. */
export function publicKeys(ring: KeyRing): Record<string, unknown>[] {
  return ring.signing.map((jwk) => Object.fromEntries(PUBLIC_MEMBERS.map((name) => [name, jwk[name]])));
}
