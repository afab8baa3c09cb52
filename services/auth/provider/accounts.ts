/** Users as the provider knows them: whether one may use a client, and as whom an access token acts. */
import { type Context, errors, type Grant, interactionPolicy, type Provider, type Token } from 'oidc-provider';
import { ACCOUNT_CLIENT_ID, APP_CLIENTS, MULTI_FACTOR_ACR } from '../../../contracts/auth.ts';
import { marksOf } from '../../../lib/access/client-marks.ts';
import { type Clients, hasDocument } from '../clients.ts';
import type { Credential } from '../store/credentials.ts';
import type { AuthStore } from '../store/store.ts';
import { GRANT_REUSE_MIN_SECONDS, LIFETIMES, nowSeconds } from './lifetimes.ts';
import { apiResource } from './paths.ts';
import { isTooOld, requestedAcrs } from './step-up.ts';
import { refuseSuspended } from './suspended.ts';

interface Principal {
  userId: string;
  tenantId: string;
  grantId: string;
}

export class Accounts {
  readonly #store: AuthStore;
  readonly #clients: Clients;

  constructor({ store, clients }: { store: AuthStore; clients: Clients }) {
    this.#store = store;
    this.#clients = clients;
  }

  /**
   * The user, when active and allowed with this client: a tenant's own client is for its own users alone. Throws
   * AccessDenied for a suspended tenant.
   */
  async find(userId: string, client: Context): Promise<Credential | null> {
    const credential = await this.#store.credentials.byUser(userId);
    if (!credential?.active) return null;
    await refuseSuspended(this.#clients, credential.tenantId);
    if (client && hasDocument(client.clientId)) {
      const declared = await this.#clients.find(client.clientId, credential.tenantId);
      return declared?.active ? credential : null;
    }
    return client?.tenantId && client.tenantId !== credential.tenantId ? null : credential;
  }

  /** As whom an access token acts; a token of client_credentials acts as the client's integration user. */
  async principal(provider: Provider, token: Token, client: Context): Promise<Principal> {
    if (!token.accountId) return this.#integrationUser(provider, client);
    const credential = await this.find(token.accountId, client);
    if (!credential || !token.grantId) throw new errors.InvalidGrant('account not found');
    return { userId: token.accountId, tenantId: credential.tenantId, grantId: token.grantId };
  }

  async #integrationUser(provider: Provider, client: Context): Promise<Principal> {
    if (client.tenantId) await refuseSuspended(this.#clients, client.tenantId);
    const credential = client.integrationUser
      ? await this.#store.credentials.byUsername(client.tenantId, client.integrationUser)
      : null;
    const declared = await this.#clients.find(client.clientId);
    if (!credential?.active || !declared)
      throw new errors.UnauthorizedClient('the client has no active integration user');
    const { tenantId, userId, sessionGeneration } = credential;
    const { grants } = this.#store;
    const clientMarks = marksOf(declared);
    const { authentication } = clientMarks;
    // One of before the client proved itself in another way counts for nothing any more.
    const standing = await grants.ofIntegration({ tenantId, userId, clientId: client.clientId, authentication });
    if (standing) return { userId, tenantId, grantId: standing };
    const grant = new provider.Grant({ accountId: userId, clientId: client.clientId });
    grant.clientMarks = clientMarks;
    grant.sessionGeneration = sessionGeneration;
    grant.addOIDCScope(client.scope);
    const grantId = await grant.save();
    const seconds = LIFETIMES.refresh_token_absolute_seconds;
    const payload = { ...(await grants.payload(grantId)), exp: nowSeconds() + seconds, integration: true };
    const row = { tenantId, id: grantId, userId, clientId: client.clientId, payload, sessionGeneration };
    await grants.save(row, seconds);
    return { userId, tenantId, grantId };
  }
}

/**
 * The grant under which a signed-in user need not be asked again; undefined when there is none to use. An earlier grant
 * counts for the client as it was declared then: with another redirect address it might be another party's.
 */
export async function existingGrant(
  provider: Provider,
  clients: Clients,
  { oidc }: Context,
): Promise<Grant | undefined> {
  const { accountId, sessionGeneration } = oidc.session;
  const { clientId } = oidc.client;
  const given = oidc.result?.consent?.grantId;
  const grantId = given ?? oidc.session.grantIdFor(clientId);
  const found = grantId ? await provider.Grant.find(grantId) : undefined;
  const lasting = given || (found && found.exp - nowSeconds() > GRANT_REUSE_MIN_SECONDS);
  const grant = lasting && found?.accountId === accountId ? found : undefined;
  const ownScopes = OWN_PAGES.get(clientId);
  if (ownScopes) {
    // A grant of an earlier version lacks scopes that the page has gained since.
    const granted = grant?.openid?.scope?.split(' ') ?? [];
    if (grant && ownScopes.every((scope) => granted.includes(scope))) return grant;
    return ownPageGrant(provider, clientId, ownScopes, { accountId, sessionGeneration });
  }
  if (!grant || given) return grant;
  // The document of that time is not stored.
  if (hasDocument(clientId)) return undefined;
  const client = await clients.find(clientId);
  return client && grant.clientMarks?.declaration === marksOf(client).declaration ? grant : undefined;
}

/** Scopes of the pages that belong to the platform: a person who signs in to one is not asked for consent. */
const OWN_PAGES: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  [ACCOUNT_CLIENT_ID, []],
  ...APP_CLIENTS.map(({ clientId, scopes }) => [clientId, scopes] as const),
]);

async function ownPageGrant(
  provider: Provider,
  clientId: string,
  scopes: readonly string[],
  { accountId, sessionGeneration }: { accountId: string; sessionGeneration: number | undefined },
): Promise<Grant> {
  const grant = new provider.Grant({ accountId, clientId });
  grant.clientMarks = marksOf({ meta: null });
  grant.sessionGeneration = sessionGeneration;
  grant.addOIDCScope(['openid', ...scopes].join(' '));
  if (scopes.length > 0) grant.addResourceScope(apiResource(provider.issuer), scopes.join(' '));
  await grant.save();
  return grant;
}

/** How and when the person signed in, as RFC 9068 has it in access tokens; nothing for a token without a person. */
export function signInClaims({ oidc }: Context): { acr?: string; amr?: readonly string[]; auth_time?: number } {
  const { AuthorizationCode, DeviceCode, RefreshToken } = oidc.entities;
  const { acr, amr, authTime } = AuthorizationCode ?? RefreshToken ?? DeviceCode ?? {};
  return authTime === undefined ? {} : { acr, amr, auth_time: authTime };
}

/**
 * A session starts with a new sign-in when its user was deactivated or belongs to another tenant than the client, and
 * when it is of one factor where the application or the tenant requires two.
 */
export function signInPolicy(
  accounts: Accounts,
  secondFactorDemanded: (user: { tenantId: string; userId: string }) => Promise<boolean>,
): unknown {
  const policy = interactionPolicy.base();
  const notUsable = new interactionPolicy.Check(
    'account_not_usable',
    'the signed-in user cannot use this client',
    (ctx) => ctx.oidc.session.accountId !== undefined && !ctx.oidc.account,
  );
  const tooWeak = new interactionPolicy.Check(
    'second_factor_missing',
    'a second factor is required',
    async ({ oidc }: Context) => {
      const userId = oidc.session.accountId;
      if (userId === undefined || oidc.session.acr === MULTI_FACTOR_ACR) return false;
      if (requestedAcrs(oidc.params).includes(MULTI_FACTOR_ACR)) return true;
      // A sign-in that was just completed was judged then.
      if (oidc.result?.login) return false;
      const user = await accounts.find(userId, null);
      return user !== null && secondFactorDemanded(user);
    },
  );
  const tooOld = new interactionPolicy.Check('sign_in_too_old', 'a recent sign-in is required', isTooOld);
  policy.get('login').checks.add(notUsable);
  policy.get('login').checks.add(tooOld);
  policy.get('login').checks.add(tooWeak);
  return policy;
}
