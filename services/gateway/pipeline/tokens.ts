/** Verifies access tokens (RFC 9068) with the signing keys of auth. */
import { decodeProtectedHeader, errors, importJWK, type JWK, type JWTPayload, jwtVerify } from 'jose';
import { type GrantState, MULTI_FACTOR_ACR } from '../../../contracts/auth.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { Scope } from '../../../lib/operation.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import type { Connection } from './budget.ts';

/** One remembered access token. */
export interface Session {
  /** Audience of the token. */
  readonly audience: readonly string[];
  readonly tenantId: string;
  readonly userId: string;
  readonly clientId: string;
  readonly grantId: string;
  readonly scopes: readonly Scope[];
  readonly actor: boolean;
  /** When the person signed in, in seconds since 1970, and with two factors; null: no person did. */
  readonly signedIn: { readonly at: number; readonly multiFactor: boolean } | null;
  readonly expiresAt: number;
  readonly tokenExpiresAt: string;
  /** The answer of the last grant check; set before the session is used. */
  grant: GrantState | null;
  connection: Connection | null;
}

const ALGORITHMS = ['EdDSA', 'Ed25519', 'ES256'];
const KEYS_REFETCH_MS = 1_000;
const KEYS_MAX_AGE_MS = 300_000;
const CLOCK_SKEW_SECONDS = 5;

type VerifyKey = Awaited<ReturnType<typeof importJWK>>;

export class Tokens {
  readonly #issuer: string;
  readonly #ask: () => Promise<{ keys: Record<string, unknown>[] }>;
  #keys = new Map<string, VerifyKey>();
  /** On the clock of `performance.now()`. */
  #keysAt = Number.NEGATIVE_INFINITY;
  #keysPending: Promise<void> | null = null;

  constructor(issuer: string, ask: () => Promise<{ keys: Record<string, unknown>[] }>) {
    this.#issuer = issuer;
    this.#ask = ask;
  }

  /** The session of a token. Throws TOKEN_INVALID, TOKEN_EXPIRED. */
  async verify(token: string, now: number): Promise<Session> {
    let kid: string | undefined;
    try {
      kid = decodeProtectedHeader(token).kid;
    } catch {
      throw new PlatformError('TOKEN_INVALID', 'The access token is not well formed.');
    }
    if (typeof kid !== 'string') throw new PlatformError('TOKEN_INVALID', 'The access token names no key.');
    const key = await this.#key(kid);
    if (!key) throw new PlatformError('TOKEN_INVALID', 'The access token is signed with an unknown key.');
    let claims: JWTPayload;
    try {
      const verified = await jwtVerify(token, key, {
        algorithms: ALGORITHMS,
        typ: 'at+jwt',
        issuer: this.#issuer,
        requiredClaims: ['exp', 'sub', 'client_id', 'tenant_id', 'grant_id'],
        clockTolerance: CLOCK_SKEW_SECONDS,
        currentDate: new Date(now),
      });
      claims = verified.payload;
    } catch (error) {
      if (error instanceof errors.JWTExpired) throw new PlatformError('TOKEN_EXPIRED', 'The access token has expired.');
      throw new PlatformError('TOKEN_INVALID', 'The access token is not valid.', { cause: error });
    }
    const expiresAt = (claims.exp ?? 0) * 1_000;
    return {
      audience: [claims.aud ?? []].flat(),
      tenantId: String(claims['tenant_id']),
      userId: String(claims['sub']),
      clientId: String(claims['client_id']),
      grantId: String(claims['grant_id']),
      scopes: String(claims['scope'] ?? '')
        .split(' ')
        .filter(Boolean) as Scope[],
      actor: claims['act'] !== undefined,
      signedIn: signInOf(claims),
      expiresAt,
      tokenExpiresAt: formatTimestamp(expiresAt),
      grant: null,
      connection: null,
    };
  }

  async #key(kid: string): Promise<VerifyKey | undefined> {
    const now = performance.now();
    const known = this.#keys.get(kid);
    if (known) {
      if (now - this.#keysAt > KEYS_MAX_AGE_MS) this.fetchKeys().catch(() => {});
      return known;
    }
    // Tokens with invented key ids must not become calls: one question per second answers them all.
    if (now - this.#keysAt >= KEYS_REFETCH_MS || this.#keysPending) await this.fetchKeys();
    return this.#keys.get(kid);
  }

  /** Asks for the keys as they are now. */
  fetchKeys(): Promise<void> {
    this.#keysPending ??= this.#ask()
      .then(async ({ keys }) => {
        const fresh = new Map<string, VerifyKey>();
        for (const jwk of keys as JWK[])
          if (jwk.kid && (jwk.kty === 'OKP' || jwk.kty === 'EC'))
            fresh.set(jwk.kid, await importJWK(jwk, jwk.alg ?? (jwk.kty === 'OKP' ? 'EdDSA' : 'ES256')));
        this.#keys = fresh;
        this.#keysAt = performance.now();
      })
      .finally(() => {
        this.#keysPending = null;
      });
    return this.#keysPending;
  }
}

const signInOf = ({ auth_time: at, acr }: JWTPayload): Session['signedIn'] =>
  typeof at === 'number' ? { at, multiFactor: acr === MULTI_FACTOR_ACR } : null;
