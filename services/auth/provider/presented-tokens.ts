/**
 * Access tokens that come back: to be introspected or revoked, or to ask who signed in. oidc-provider takes tokens that it
 * has stored, but ours are JWTs that are stored nowhere. So a JWT that arrives there is verified first, and the provider
 * gets a handle in its place, valid for that one request, under which it finds the claims of the token.
 */
import { randomBytes } from 'node:crypto';
import { createLocalJWKSet, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose';
import { platformTime } from '../../../lib/values/clock.ts';
import { SIGNING_ALG } from '../keys.ts';

export class PresentedTokens {
  readonly #payloads = new Map<string, Record<string, unknown>>();

  payload(handle: string): Record<string, unknown> | undefined {
    return this.#payloads.get(handle);
  }

  /**
   * Rewrites the form of an introspection or revocation request and runs `work` with it. Anything but a genuine,
   * unexpired access token becomes a handle without a payload, so the provider answers "not active".
   */
  async during<T>(form: string, keys: JSONWebKeySet, issuer: string, work: (form: string) => Promise<T>): Promise<T> {
    const parameters = new URLSearchParams(form);
    const token = parameters.get('token') ?? '';
    if (parameters.getAll('token').length !== 1 || !IS_JWT.test(token)) return work(form);
    const payload = await verified(token, keys, issuer);
    return this.#with(payload && modelOf(payload), (handle) => {
      parameters.set('token', handle);
      parameters.set('token_type_hint', 'access_token');
      return work(parameters.toString());
    });
  }

  /**
   * Runs `work` with a handle for the access token of a userinfo request, under which the provider finds nothing unless
   * the token is genuine and `isLive`. The provider refuses tokens for a resource there; whatever ours are for, their
   * scopes say what their owner may learn.
   */
  async asking<T>(
    token: string,
    keys: JSONWebKeySet,
    issuer: string,
    isLive: (claims: TokenClaims) => Promise<boolean>,
    work: (handle: string) => Promise<T>,
  ): Promise<T> {
    const payload = IS_JWT.test(token) ? await verified(token, keys, issuer) : null;
    const live = payload !== null && (await isLive(claimsOf(payload)));
    return this.#with(live ? { ...modelOf(payload), aud: undefined } : null, work);
  }

  async #with<T>(payload: Record<string, unknown> | null, work: (handle: string) => Promise<T>): Promise<T> {
    const handle = randomBytes(24).toString('base64url');
    if (payload) this.#payloads.set(handle, payload);
    try {
      return await work(handle);
    } finally {
      this.#payloads.delete(handle);
    }
  }
}

/** Owner of the token. */
export interface TokenClaims {
  readonly tenantId: string;
  readonly grantId: string;
  readonly userId: string;
  readonly clientId: string;
}

const IS_JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** The claims of an access token of ours; null: it is none, altered or expired. */
async function verified(token: string, keys: JSONWebKeySet, issuer: string): Promise<JWTPayload | null> {
  try {
    const { payload } = await jwtVerify(token, createLocalJWKSet(keys), {
      issuer,
      typ: 'at+jwt',
      algorithms: [SIGNING_ALG],
      currentDate: new Date(platformTime()),
    });
    return payload;
  } catch {
    return null;
  }
}

const claimsOf = (payload: JWTPayload): TokenClaims => ({
  tenantId: String(payload['tenant_id']),
  grantId: String(payload['grant_id']),
  userId: String(payload.sub),
  clientId: String(payload['client_id']),
});

/** The token as the provider would have stored it. */
const modelOf = (payload: JWTPayload): Record<string, unknown> => ({
  kind: 'AccessToken',
  jti: payload.jti,
  iat: payload.iat,
  exp: payload.exp,
  aud: payload.aud,
  accountId: payload.sub,
  clientId: payload['client_id'],
  grantId: payload['grant_id'],
  scope: payload['scope'],
  extra: {
    tenant_id: payload['tenant_id'],
    grant_id: payload['grant_id'],
    acr: payload['acr'],
    auth_time: payload['auth_time'],
  },
});
