/**
 * The OAuth 2.0 and OpenID server: oidc-provider, configured. One instance per public address and generation of keys;
 * all of them share one database. Source: docs/reference/authentication.md.
 */
import { type Context, errors, type Grant, interactionPolicy, Provider, type Token } from 'oidc-provider';
import { ALL_SCOPES, type Clients, secretMatches } from '../clients.ts';
import { type KeyRing, SIGNING_ALG } from '../keys.ts';
import * as pages from '../pages/pages.ts';
import type { Credential } from '../store/credentials.ts';
import type { AuthStore } from '../store/store.ts';
import { isUnavailable } from '../unavailable.ts';
import { type AdapterParts, adapters } from './adapter.ts';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const LIFETIMES = {
  access_token_seconds: HOUR,
  access_token_agent_seconds: 15 * MINUTE,
  authorization_code_seconds: MINUTE,
  device_code_seconds: 10 * MINUTE,
  refresh_token_idle_seconds: 30 * DAY,
  refresh_token_absolute_seconds: 180 * DAY,
  session_seconds: 12 * HOUR,
  interaction_seconds: HOUR,
} as const;

export const PATHS = {
  authorization: '/oauth2/authorize',
  token: '/oauth2/token',
  device_authorization: '/oauth2/device_authorization',
  code_verification: '/device',
  pushed_authorization_request: '/oauth2/par',
  revocation: '/oauth2/revoke',
  introspection: '/oauth2/introspect',
  jwks: '/oauth2/jwks',
  registration: '/oauth2/register',
  end_session: '/oauth2/logout',
} as const;

const SESSION_COOKIE = 'erp_session';

export interface ProviderParts extends AdapterParts {
  store: AuthStore;
  clients: Clients;
  onError(error: unknown): void;
}

/** The resource that access tokens are for. */
export const apiResource = (issuer: string): string => `${issuer}/api/v1`;

/** Routes on which a client asks for scopes; the token endpoint hands out what was granted. */
const ASKING_ROUTES = new Set(['authorization', 'pushed_authorization_request', 'device_authorization']);

/**
 * The provider drops a scope it does not know. A misspelt one would then give a token that can do less than its owner
 * believes, so it is refused (RFC 6749 section 3.3), and so is a request for none.
 */
function checkScopes({ oidc }: Context): void {
  const asking = ASKING_ROUTES.has(oidc.route) || oidc.params.grant_type === 'client_credentials';
  if (!asking) return;
  const scopes: string[] = [...oidc.requestParamScopes];
  if (!scopes.length) throw new errors.InvalidScope('scope is required');
  for (const scope of scopes)
    if (scope !== 'openid' && !ALL_SCOPES.includes(scope)) throw new errors.InvalidScope('unknown scope', scope);
}

const ownToken = (_ctx: Context, client: Context, token: Token): boolean => token.clientId === client.clientId;

const scopesOf = (client: Context): string[] =>
  String(client.scope)
    .split(' ')
    .filter((scope) => ALL_SCOPES.includes(scope));

const now = (): number => Math.floor(Date.now() / 1000);

/** Access tokens of a client live as long as its configuration says, and never longer than the platform's own limit. */
function accessTokenSeconds(client: Context): number {
  const limit = client.agent ? LIFETIMES.access_token_agent_seconds : LIFETIMES.access_token_seconds;
  return Math.max(MINUTE, Math.min(limit, client.accessTokenSeconds ?? limit));
}

export function createProvider(issuer: string, ring: KeyRing, parts: ProviderParts): Provider {
  const { store } = parts;
  const resource = apiResource(issuer);
  const signingKid = ring.signing[0]!.kid;

  /** The user, when active and allowed with this client: a tenant's own client is for its own users alone. */
  const account = async (userId: string, client: Context): Promise<Credential | null> => {
    const credential = await store.credentials.byUser(userId);
    if (!credential?.active) return null;
    return client?.tenantId && client.tenantId !== credential.tenantId ? null : credential;
  };

  const policy = interactionPolicy.base();
  // A session whose user was deactivated, or belongs to another tenant than the client, starts with a new sign-in.
  policy
    .get('login')
    .checks.add(
      new interactionPolicy.Check(
        'account_not_usable',
        'the signed-in user cannot use this client',
        (ctx) => ctx.oidc.session.accountId !== undefined && !ctx.oidc.account,
      ),
    );

  /** sub, tenant_id and grant_id of an access token; for client_credentials those of the integration user. */
  const principal = async (
    token: Token,
    client: Context,
  ): Promise<{ sub: string; tenantId: string; grantId: string }> => {
    if (token.accountId) {
      const credential = await account(token.accountId, client);
      if (!credential || !token.grantId) throw new errors.InvalidGrant('account not found');
      return { sub: token.accountId, tenantId: credential.tenantId, grantId: token.grantId };
    }
    const credential = client.integrationUser ? await store.credentials.byUsername(client.integrationUser) : null;
    if (!credential?.active || credential.tenantId !== client.tenantId)
      throw new errors.UnauthorizedClient('the client has no active integration user');
    const { tenantId, userId } = credential;
    const standing = await store.grants.ofIntegration(tenantId, userId, client.clientId);
    if (standing) return { sub: userId, tenantId, grantId: standing };
    const grant = new provider.Grant({ accountId: userId, clientId: client.clientId });
    grant.addOIDCScope(client.scope);
    const grantId = await grant.save();
    const seconds = LIFETIMES.refresh_token_absolute_seconds;
    const payload = { ...(await store.grants.payload(grantId)), exp: now() + seconds, integration: true };
    await store.grants.save({ tenantId, id: grantId, userId, clientId: client.clientId, payload }, seconds);
    return { sub: userId, tenantId, grantId };
  };

  const provider = new Provider(issuer, {
    adapter: adapters(parts),
    jwks: { keys: ring.signing },
    routes: PATHS,
    scopes: ['openid', ...ALL_SCOPES],
    responseTypes: ['code'],
    subjectTypes: ['public'],
    clientAuthMethods: ['private_key_jwt', 'client_secret_basic', 'none'],
    discovery: { service_documentation: `${resource}/versions/1.0.0/docs`, ui_locales_supported: ['en'] },
    clientDefaults: { id_token_signed_response_alg: SIGNING_ALG },
    enabledJWA: {
      idTokenSigningAlgValues: [SIGNING_ALG],
      clientAuthSigningAlgValues: ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256'],
    },
    extraClientMetadata: {
      properties: ['tenantId', 'origins', 'accessTokenSeconds', 'agent', 'integrationUser'],
    },
    claims: { openid: ['sub'] },
    pkce: { required: () => true },
    allowOmittingSingleRegisteredRedirectUri: false,
    cookies: {
      keys: ring.cookies,
      names: { session: SESSION_COOKIE, interaction: 'erp_interaction', resume: 'erp_resume' },
      long: { httpOnly: true, sameSite: 'lax', signed: true },
      short: { httpOnly: true, sameSite: 'lax', signed: true },
    },
    features: {
      devInteractions: { enabled: false },
      dPoP: { enabled: false },
      userinfo: { enabled: false },
      clientCredentials: { enabled: true },
      // A client learns of and ends its own tokens, never those of another client or tenant.
      introspection: { enabled: true, allowedPolicy: ownToken },
      revocation: { enabled: true, allowedPolicy: ownToken },
      pushedAuthorizationRequests: { enabled: true },
      registration: { enabled: false },
      deviceFlow: {
        enabled: true,
        charset: 'base-20',
        mask: '****-****',
        userCodeInputSource: (ctx: Context, form: string, _out: unknown, error: Context) =>
          show(ctx, pages.deviceCode(hidden(form, 'xsrf'), ctx.state.userCode ?? error?.userCode ?? '', error?.name)),
        userCodeConfirmSource: (ctx: Context, form: string, client: Context, _device: unknown, userCode: string) =>
          show(ctx, pages.deviceConfirm(hidden(form, 'xsrf'), userCode, client.clientName ?? client.clientId)),
        successSource: (ctx: Context) => show(ctx, pages.deviceDone(ctx.oidc.client.clientName ?? 'your device')),
      },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: (ctx: Context, form: string) => show(ctx, pages.signOut(hidden(form, 'xsrf'))),
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
            // What the client may have today: a refresh token from a time when it was more gets no more than that.
            scope: scopesOf(client).join(' '),
            audience: resource,
            accessTokenFormat: 'jwt',
            accessTokenTTL: accessTokenSeconds(client),
            jwt: { sign: { alg: SIGNING_ALG, kid: signingKid } },
          };
        },
      },
    },
    formats: {
      customizers: {
        jwt: async (ctx: Context, token: Token, jwt: { payload: Record<string, unknown> }) => {
          const { sub, tenantId, grantId } = await principal(token, ctx.oidc.client);
          Object.assign(jwt.payload, { sub, tenant_id: tenantId, grant_id: grantId });
        },
      },
    },
    ttl: {
      AccessToken: (_ctx: Context, token: Token) =>
        token.resourceServer?.accessTokenTTL ?? LIFETIMES.access_token_seconds,
      ClientCredentials: (_ctx: Context, token: Token) =>
        token.resourceServer?.accessTokenTTL ?? LIFETIMES.access_token_seconds,
      AuthorizationCode: LIFETIMES.authorization_code_seconds,
      DeviceCode: LIFETIMES.device_code_seconds,
      IdToken: LIFETIMES.access_token_seconds,
      Interaction: LIFETIMES.interaction_seconds,
      Session: LIFETIMES.session_seconds,
      // A grant without a refresh token only has to outlive the sign-in session that renews its access tokens.
      Grant: (_ctx: Context, grant: Grant) =>
        (grant.openid?.scope ?? '').split(' ').includes('offline_access')
          ? LIFETIMES.refresh_token_absolute_seconds
          : DAY,
      RefreshToken: (_ctx: Context, token: Token) => {
        const end = (token.iiat ?? now()) + LIFETIMES.refresh_token_absolute_seconds;
        return Math.max(1, Math.min(LIFETIMES.refresh_token_idle_seconds, end - now()));
      },
    },
    rotateRefreshToken: true,
    expiresWithSession: () => false,
    // Whatever was revoked or misused, the whole grant ends: that is what the gateway watches.
    revokeGrantPolicy: () => true,
    findAccount: async (ctx: Context, userId: string) => {
      const credential = await account(userId, ctx.oidc.client);
      return credential ? { accountId: userId, claims: async () => ({ sub: userId }) } : undefined;
    },
    loadExistingGrant: async (ctx: Context) => {
      const { oidc } = ctx;
      const given = oidc.result?.consent?.grantId;
      const grantId = given ?? oidc.session.grantIdFor(oidc.client.clientId);
      const grant = grantId ? await provider.Grant.find(grantId) : undefined;
      if (!grant || grant.accountId !== oidc.session.accountId) return undefined;
      // An access token must not outlive its grant, so one that is about to end is asked for anew.
      return given || grant.exp - now() > 2 * HOUR ? grant : undefined;
    },
    interactions: {
      policy,
      url: (_ctx: Context, interaction: { uid: string }) => `/oauth2/interaction/${interaction.uid}`,
    },
    clientBasedCORS: (_ctx: Context, origin: string, client: Context) =>
      Array.isArray(client.origins) && client.origins.includes(origin),
    renderError: (ctx: Context, out: { error: string; error_description?: string }) =>
      show(ctx, pages.failure(out.error, out.error_description ?? null, ctx.status)),
  });

  provider.proxy = true; // http.ts alone sets the forwarded headers
  provider.Client.prototype.compareClientSecret = function compare(actual) {
    return secretMatches(this.clientSecret ?? '', actual);
  };
  provider.silent = true; // errors go to our log, not to stderr
  provider.on('error', ((error: unknown) => parts.onError(error)) as never);
  provider.on('server_error', ((ctx: Context, error: unknown) => {
    ctx.state.unavailable ||= isUnavailable(error);
    parts.onError(error);
  }) as never);
  provider.use(async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      ctx.state.unavailable = true;
    }
    // A redirect already tells the client; everything else is told here that it may simply try again.
    if (!ctx.state.unavailable || (ctx.status >= 300 && ctx.status < 400)) return;
    const page = pages.unavailable();
    if (ctx.accepts('json', 'html') === 'html') show(ctx, page);
    else ctx.body = { error: 'temporarily_unavailable', error_description: 'try again in a moment' };
    ctx.status = page.status;
    ctx.set('retry-after', String(page.retryAfterSeconds));
  });
  provider.use(async (ctx, next) => {
    // verification_uri_complete (RFC 8628 section 3.3.1): the provider would submit the code by script; ours is filled
    // into the form, and the person sends it.
    if (ctx.method === 'GET' && ctx.path === PATHS.code_verification && ctx.query.user_code) {
      ctx.state.userCode = String(ctx.query.user_code).slice(0, 20);
      ctx.query = {};
    } else if (
      (ctx.path.startsWith(`${PATHS.code_verification}/`) ||
        (ctx.method === 'POST' && ctx.path === PATHS.code_verification)) &&
      !ctx.cookies.get(SESSION_COOKIE)
    ) {
      // The way through the device pages begins at the first one; without its cookie there is nothing to go on with.
      ctx.status = 303;
      ctx.redirect(PATHS.code_verification);
      return;
    }
    await next();
  });
  return provider;

  function show(ctx: Context, page: pages.Page): void {
    ctx.status = page.status;
    ctx.type = 'html';
    for (const [name, value] of Object.entries(pages.headers(page))) ctx.set(name, value);
    ctx.body = pages.render(page);
  }
}

/** The provider hands over its forms as HTML; ours need only the hidden value in them. */
function hidden(form: string, name: string): string {
  return new RegExp(`name="${name}" value="([^"]*)"`).exec(form)?.[1] ?? '';
}
