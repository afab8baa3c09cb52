/** Parts of OAuth and OpenID Connect that the provider offers. */
import { type Context, errors, type Token } from 'oidc-provider';
import {
  type ExternalClientMeta,
  resourcesOf,
  TOKEN_RESOURCES,
  type TokenResource,
} from '../../../lib/schema/snapshot.ts';
import * as pages from '../../../web/sign-in/pages.ts';
import { ALL_SCOPES, hasDocument } from '../clients.ts';
import { type KeyRing, SIGNING_ALG } from '../keys.ts';
import { DEVICE_FLOW } from './device-flow.ts';
import { accessTokenSeconds } from './lifetimes.ts';
import { type ClientSources, clientDocuments, declarationOf, declaredScopes } from './metadata-documents.ts';
import { addressOf, resourceAt, userinfoResource } from './paths.ts';
import { checkScopes, forAssistants, isAboutIdentityAlone, scopesOf } from './scopes.ts';
import { hiddenValue, show } from './show.ts';

/** A client inspects and ends its own tokens, never those of another client or tenant. */
const ownToken = (_ctx: Context, client: Context, token: Token): boolean => token.clientId === client.clientId;

/** Before the sign-in such a client may ask for whatever there is. */
const scopesOfDocument = (declared: ExternalClientMeta | null): string =>
  (declared === null ? ALL_SCOPES : declaredScopes(declared)).join(' ');

/** Audiences that a client may request. Before the sign-in one with a document may ask for all. */
const allowedResources = (client: Context, declared: ExternalClientMeta | null): readonly TokenResource[] =>
  declared === null ? (client.resources ?? TOKEN_RESOURCES) : resourcesOf(declared);

/**
 * For a client that names no resource: who signed in, where it asks for nothing else; the API where it may have that; one
 * with a document is an assistant first. The account page asks for no token at all.
 */
function preferred(issuer: string, ctx: Context, client: Context): string {
  if (isAboutIdentityAlone(ctx) && ctx.oidc.params.response_type !== 'none') return userinfoResource(issuer);
  return addressOf(issuer, hasDocument(client.clientId) || client.resources?.includes('api') === false ? 'mcp' : 'api');
}

export const features = (issuer: string, ring: KeyRing, parts: ClientSources): Record<string, object> => ({
  clientIdMetadataDocument: clientDocuments(parts.clients),
  devInteractions: { enabled: false },
  dPoP: { enabled: false },
  userinfo: { enabled: true },
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
    defaultResource: (ctx: Context, client: Context, oneOf?: string[]) => oneOf?.[0] ?? preferred(issuer, ctx, client),
    useGrantedResource: () => true,
    getResourceServerInfo: async (ctx: Context, indicator: string, client: Context) => {
      const resource = resourceAt(issuer, indicator);
      const declared = await declarationOf(ctx, client, parts);
      const common = {
        audience: indicator,
        accessTokenFormat: 'jwt',
        accessTokenTTL: accessTokenSeconds(declared ?? client),
        jwt: { sign: { alg: SIGNING_ALG, kid: ring.signing[0].kid } },
      };
      const scopes = hasDocument(client.clientId) ? scopesOfDocument(declared) : scopesOf(client);
      if (indicator === userinfoResource(issuer)) {
        checkScopes(ctx);
        return { ...common, scope: scopes.split(' ').includes('offline_access') ? 'offline_access' : '' };
      }
      if (resource === null) throw new errors.InvalidTarget();
      if (!allowedResources(client, declared).includes(resource))
        throw new errors.InvalidTarget('the client cannot get tokens for this resource');
      checkScopes(ctx);
      return {
        ...common,
        // The client's present audiences; an older refresh token with more is limited to them.
        scope: resource === 'mcp' ? forAssistants(scopes.split(' ')).join(' ') : scopes,
      };
    },
  },
});
