/** Which parts of OAuth and OpenID Connect the provider offers. */
import { type Context, errors, type Token } from 'oidc-provider';
import { type KeyRing, SIGNING_ALG } from '../keys.ts';
import * as pages from '../pages/pages.ts';
import { DEVICE_FLOW } from './device-flow.ts';
import { accessTokenSeconds } from './lifetimes.ts';
import { checkScopes, scopesOf } from './scopes.ts';
import { hiddenValue, show } from './show.ts';

/** A client inspects and ends its own tokens, never those of another client or tenant. */
const ownToken = (_ctx: Context, client: Context, token: Token): boolean => token.clientId === client.clientId;

export const features = (resource: string, ring: KeyRing): Record<string, object> => ({
  devInteractions: { enabled: false },
  dPoP: { enabled: false },
  userinfo: { enabled: false },
  clientCredentials: { enabled: true },
  introspection: { enabled: true, allowedPolicy: ownToken },
  revocation: { enabled: true, allowedPolicy: ownToken },
  pushedAuthorizationRequests: { enabled: true },
  registration: { enabled: false },
  deviceFlow: { ...DEVICE_FLOW },
  rpInitiatedLogout: {
    enabled: true,
    logoutSource: (ctx: Context, form: string) => show(ctx, pages.signOut(hiddenValue(form, 'xsrf'))),
    postLogoutSuccessSource: (ctx: Context) => show(ctx, pages.signedOut()),
  },
  resourceIndicators: {
    enabled: true,
    defaultResource: (_ctx: Context, _client: unknown, oneOf?: string[]) => oneOf?.[0] ?? resource,
    useGrantedResource: () => true,
    getResourceServerInfo: (ctx: Context, indicator: string, client: Context) => {
      if (indicator !== resource) throw new errors.InvalidTarget();
      checkScopes(ctx);
      return {
        // What the client may have today; a refresh token of a time when it could have more gets no more than that.
        scope: scopesOf(client),
        audience: resource,
        accessTokenFormat: 'jwt',
        accessTokenTTL: accessTokenSeconds(client),
        jwt: { sign: { alg: SIGNING_ALG, kid: ring.signing[0].kid } },
      };
    },
  },
});
