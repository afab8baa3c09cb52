/**
 * The OAuth 2.0 and OpenID server: oidc-provider, configured. One instance per public address and generation of keys;
 * all of them share one database. Source: docs/reference/authentication.md.
 */
import { type Context, Provider, type Token } from 'oidc-provider';
import { MULTI_FACTOR_ACR } from '../../../contracts/auth.ts';
import { documentsUrl } from '../../../lib/addresses.ts';
import type { GuardedFetch } from '../../../mixins/outbound.ts';
import * as pages from '../../../web/sign-in/pages.ts';
import { ALL_SCOPES, type Clients, IDENTITY_SCOPE_NAMES, secretMatches } from '../clients.ts';
import { SINGLE_FACTOR_ACR } from '../factors/assurance.ts';
import { type KeyRing, SIGNING_ALG } from '../keys.ts';
import type { AuthStore } from '../store/store.ts';
import { Accounts, existingGrant, signInClaims, signInPolicy } from './accounts.ts';
import { type AdapterParts, adapters, secretKey } from './adapter.ts';
import { CLAIMS, type ClaimParts, claimsOf } from './claims.ts';
import { devicePages } from './device-flow.ts';
import { features } from './features.ts';
import { formPages } from './form-pages.ts';
import { TIMES_TO_LIVE } from './lifetimes.ts';
import { documentReader } from './metadata-documents.ts';
import { interactionPath, PATHS } from './paths.ts';
import { identityScopesOf, identityScopesOfToken } from './scopes.ts';
import { requestIdOf, show } from './show.ts';
import { STEP_UP_PARAMETERS } from './step-up.ts';
import { answerUnavailable, noteDocumentUnread, noteUnavailable } from './unavailable.ts';

const SESSION_COOKIE = 'erp_session';
const COOKIE = { httpOnly: true, sameSite: 'lax', signed: true };

interface ProviderParts extends AdapterParts, Pick<ClaimParts, 'user'> {
  store: AuthStore;
  clients: Clients;
  /** True when the tenant requires a second factor of this user. */
  secondFactorDemanded(user: { tenantId: string; userId: string }): Promise<boolean>;
  /** Requests to addresses that tenants name. */
  outbound: GuardedFetch;
  documentRefused(address: string, reason: unknown): void;
  onError(error: unknown): void;
}

export function createProvider(issuer: string, ring: KeyRing, parts: ProviderParts): Provider {
  const accounts = new Accounts(parts);
  const provider: Provider = new Provider(issuer, {
    ...protocol(accounts, parts),
    discovery: { service_documentation: documentsUrl(issuer), ui_locales_supported: ['en'] },
    adapter: adapters(issuer, parts),
    jwks: { keys: ring.signing },
    cookies: {
      keys: ring.cookies,
      names: { session: SESSION_COOKIE, interaction: 'erp_interaction', resume: 'erp_resume' },
      long: { ...COOKIE },
      short: { ...COOKIE },
    },
    features: features(issuer, ring, parts),
    fetch: documentReader(parts.outbound, parts.documentRefused),
    formats: {
      customizers: {
        jwt: async (ctx: Context, token: Token, jwt: { payload: Record<string, unknown> }) => {
          const { userId, tenantId, grantId } = await accounts.principal(provider, token, ctx.oidc.client);
          const identity = await identityScopesOfToken(ctx, parts);
          // The answer of the token endpoint names the scopes of the token, so it has them from here.
          token.scope = [...identity, ...(token.scope ?? '').split(' ').filter(Boolean)].join(' ');
          jwt.payload['scope'] = token.scope || undefined;
          Object.assign(jwt.payload, { sub: userId, tenant_id: tenantId, grant_id: grantId, ...signInClaims(ctx) });
        },
      },
    },
    findAccount: async (ctx: Context, userId: string) => {
      const account = await accounts.find(userId, ctx.oidc.client);
      if (!account) return undefined;
      const claims = async (_use: string, scope: string): Promise<object> => {
        const allowed = await identityScopesOf(ctx, ctx.oidc.client, parts);
        const scopes = scope.split(' ').filter((name) => allowed.includes(name));
        return claimsOf(parts, account, scopes);
      };
      return { accountId: userId, claims };
    },
    loadExistingGrant: (ctx: Context) => existingGrant(provider, parts.clients, ctx),
  });
  // A grant keeps by what its client is recognised.
  const kept = [...provider.Grant.IN_PAYLOAD, 'clientMarks', 'sessionGeneration'];
  Object.defineProperty(provider.Grant, 'IN_PAYLOAD', { value: kept });
  const keptOfSession = [...provider.Session.IN_PAYLOAD, 'sessionGeneration', 'storedAs'];
  Object.defineProperty(provider.Session, 'IN_PAYLOAD', { value: keptOfSession });
  // The provider hands its own members of a login to the session, and drops ours.
  const { loginAccount } = provider.Session.prototype;
  provider.Session.prototype.loginAccount = function login(details) {
    loginAccount.call(this, details);
    this.sessionGeneration = Provider.ctx.oidc.entities.Interaction.result.login.sessionGeneration;
  };
  // A session that was found is only changed, under a new id as well: one that was signed out while a request used it must
  // not be made anew when the request ends.
  const { save } = provider.Session.prototype;
  provider.Session.prototype.save = async function saveFound(seconds: number) {
    this.oldId = undefined;
    const saved = await save.call(this, seconds);
    this.storedAs = secretKey(this.id);
    return saved;
  };
  provider.Client.prototype.compareClientSecret = function compare(actual) {
    return secretMatches(this.clientSecret ?? '', actual);
  };
  provider.proxy = true; // http.ts alone sets the forwarded headers
  provider.silent = true; // errors go to our log, not to stderr
  provider.on('error', (error) => parts.onError(error));
  provider.on('server_error', (ctx, error) => {
    noteUnavailable(ctx, error);
    parts.onError(error);
  });
  for (const event of ['grant.error', 'revocation.error', 'userinfo.error'] as const)
    provider.on(event, noteDocumentUnread);
  provider.use(answerUnavailable);
  provider.use(formPages);
  provider.use(devicePages(SESSION_COOKIE));
  return provider;
}

/** The configuration that is the same for every address and all keys; each provider gets objects of its own. */
const protocol = (accounts: Accounts, { secondFactorDemanded }: ProviderParts) => ({
  routes: { ...PATHS },
  scopes: [...IDENTITY_SCOPE_NAMES, ...ALL_SCOPES],
  acrValues: [SINGLE_FACTOR_ACR, MULTI_FACTOR_ACR],
  claims: structuredClone(CLAIMS),
  responseTypes: ['code', 'none'],
  subjectTypes: ['public'],
  clientAuthMethods: ['private_key_jwt', 'client_secret_basic', 'none'],
  clientDefaults: { id_token_signed_response_alg: SIGNING_ALG },
  enabledJWA: {
    idTokenSigningAlgValues: [SIGNING_ALG],
    clientAuthSigningAlgValues: ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256'],
  },
  extraClientMetadata: {
    properties: ['tenantId', 'origins', 'resources', 'accessTokenSeconds', 'agent', 'integrationUser'],
  },
  extraParams: [...STEP_UP_PARAMETERS],
  pkce: { required: () => true },
  allowOmittingSingleRegisteredRedirectUri: false,
  ttl: { ...TIMES_TO_LIVE },
  rotateRefreshToken: true,
  expiresWithSession: () => false,
  // Whatever was revoked or misused, the whole grant ends: that is what the gateway watches.
  revokeGrantPolicy: () => true,
  interactions: {
    policy: signInPolicy(accounts, secondFactorDemanded),
    url: (_ctx: Context, interaction: { uid: string }) => interactionPath(interaction.uid),
  },
  clientBasedCORS: (_ctx: Context, origin: string, client: Context) =>
    Array.isArray(client.origins) && client.origins.includes(origin),
  renderError: (ctx: Context, out: { error: string; error_description?: string }) =>
    show(
      ctx,
      pages.failure({
        code: out.error,
        description: out.error_description ?? null,
        status: ctx.status,
        requestId: requestIdOf(ctx),
      }),
    ),
});
