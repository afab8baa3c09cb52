/**
 * Introspection and revocation of access tokens. oidc-provider does both for tokens it has stored, but ours are JWTs
 * that are stored nowhere. So a JWT that arrives there is verified first, and the provider gets a handle in its place,
 * valid for that one request, under which it finds the claims of the token.
 */
import { randomBytes } from 'node:crypto';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
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
    if (parameters.getAll('token').length !== 1 || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return work(form);
    const handle = randomBytes(24).toString('base64url');
    parameters.set('token', handle);
    parameters.set('token_type_hint', 'access_token');
    try {
      const { payload } = await jwtVerify(token, createLocalJWKSet(keys), {
        issuer,
        typ: 'at+jwt',
        algorithms: [SIGNING_ALG],
        currentDate: new Date(platformTime()),
      });
      this.#payloads.set(handle, {
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
    } catch {
      // Not ours, altered or expired: the handle stays without a payload.
    }
    try {
      return await work(parameters.toString());
    } finally {
      this.#payloads.delete(handle);
    }
  }
}
