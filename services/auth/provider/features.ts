/** Which parts of OAuth and OpenID Connect the provider offers. */
import { type Context, errors, type Token } from 'oidc-provider';
import {
  type ExternalClientMeta,
  resourcesOf,
  TOKEN_RESOURCES,
  type TokenResource,
} from '../../../lib/schema/snapshot.ts';
import { ALL_SCOPES, type Clients, hasDocument } from '../clients.ts';
import { type KeyRing, SIGNING_ALG } from '../keys.ts';
import * as pages from '../pages/pages.ts';
import type { AuthStore } from '../store/store.ts';
import { DEVICE_FLOW } from './device-flow.ts';
import { accessTokenSeconds } from './lifetimes.ts';
import { clientDocuments, declarationOf, declaredScopes } from './metadata-documents.ts';
import { addressOf, resourceAt } from './paths.ts';
import { checkScopes, forAssistants, scopesOf } from './scopes.ts';
import { hiddenValue, show } from './show.ts';

/** A client inspects and ends its own tokens, never those of another client or tenant. */
const ownToken = (_ctx: Context, client: Context, token: Token): boolean => token.clientId === client.clientId;

interface FeatureParts {
  readonly clients: Clients;
  readonly store: AuthStore;
}

/** Before the sign-in such a client may ask for whatever there is. */
const scopesOfDocument = (declared: ExternalClientMeta | null): string =>
  (declared === null ? ALL_SCOPES : declaredScopes(declared)).join(' ');

/** What a client may have tokens for. Before the sign-in one with a document may ask for whatever there is. */
const allowedResources = (client: Context, declared: ExternalClientMeta | null): readonly TokenResource[] =>
  declared === null ? (client.resources ?? TOKEN_RESOURCES) : resourcesOf(declared);

/** For a client that names no resource: the API where it may have that; one with a document is an assistant first. */
const preferred = (client: Context): TokenResource =>
  hasDocument(client.clientId) || client.resources?.includes('api') === false ? 'mcp' : 'api';

export const features = (issuer: string, ring: KeyRing, parts: FeatureParts): Record<string, object> => ({
  clientIdMetadataDocument: clientDocuments(parts.clients),
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
    defaultResource: (_ctx: Context, client: Context, oneOf?: string[]) =>
      oneOf?.[0] ?? addressOf(issuer, preferred(client)),
    useGrantedResource: () => true,
    getResourceServerInfo: async (ctx: Context, indicator: string, client: Context) => {
      const resource = resourceAt(issuer, indicator);
      if (resource === null) throw new errors.InvalidTarget();
      const declared = await declarationOf(ctx, client, parts);
      if (!allowedResources(client, declared).includes(resource))
        throw new errors.InvalidTarget('the client cannot get tokens for this resource');
      checkScopes(ctx);
      const scopes = hasDocument(client.clientId) ? scopesOfDocument(declared) : scopesOf(client);
      return {
        // What the client may have today; a refresh token of a time when it could have more gets no more than that.
        scope: resource === 'mcp' ? forAssistants(scopes.split(' ')).join(' ') : scopes,
        audience: indicator,
        accessTokenFormat: 'jwt',
        accessTokenTTL: accessTokenSeconds(declared ?? client),
        jwt: { sign: { alg: SIGNING_ALG, kid: ring.signing[0].kid } },
      };
    },
  },
});
