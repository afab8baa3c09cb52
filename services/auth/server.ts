/**
 * The authorization server of one node: the keys in the database, one provider per public address, and what the other
 * services call. Everything it holds in memory can be lost at any moment.
 */
import { LRUCache } from 'lru-cache';
import type { Provider } from 'oidc-provider';
import type { AuthActions, GrantState, HttpReply, HttpRequest } from '../../contracts/auth.ts';
import type { OperationInput } from '../../contracts/operations.ts';
import type { RequestContext } from '../../lib/context.ts';
import type { OperationReply } from '../../lib/operation.ts';
import type { DeploymentSecrets } from '../../lib/values/derived-keys.ts';
import type { SealingKeys } from '../../lib/values/sealed.ts';
import type { GuardedFetch } from '../../mixins/outbound.ts';
import { Clients, type ClientsOptions, type TenantSource } from './clients.ts';
import { listConnections } from './connections.ts';
import { listDeprecatedUses } from './deprecated-uses.ts';
import { TenantDomains } from './domains.ts';
import { type SecondFactorParts, SecondFactors } from './factors/factors.ts';
import { demandsSecondFactor } from './factors/policy.ts';
import { checkGrants, type GrantCheck } from './grants.ts';
import { baseUrl, handle } from './http.ts';
import { type KeyRing, Keys, type PublicKey, publicKeys } from './keys.ts';
import { Mail, type MailOptions } from './mail/mail.ts';
import { OperatorAudit } from './operator-audit.ts';
import { hashLinkToken } from './passwords.ts';
import type { ClaimParts } from './provider/claims.ts';
import { PresentedTokens } from './provider/presented-tokens.ts';
import { createProvider } from './provider/provider.ts';
import type { AttemptOrigin, Refusal } from './refusals.ts';
import { unavailableReply } from './reply.ts';
import { SingleSignOnAdministration } from './single-sign-on/administration.ts';
import { OpenIdClient } from './single-sign-on/openid.ts';
import { ProviderSecrets } from './single-sign-on/secrets.ts';
import { SingleSignOn, type SingleSignOnParts } from './single-sign-on/single-sign-on.ts';
import type { AuthStore } from './store/store.ts';
import { isUnavailable } from './unavailable.ts';
import { type UserNotices, Users } from './users.ts';
import { Vault } from './vault.ts';

export interface AuthServerOptions
  extends UserNotices,
    ClientsOptions,
    Omit<SecondFactorParts, 'clients'>,
    Pick<ClaimParts, 'user'>,
    Pick<SingleSignOnParts, 'isUser' | 'createUser' | 'providerFailed'> {
  store: AuthStore;
  mail: MailOptions;
  /** Shown where people sign in; null: it is not public, or there is no demo. */
  demoPassword: string | null;
  /** Ends mails about notifications by the token of a link. */
  stopMails(token: string): Promise<unknown>;
  source: TenantSource;
  secrets: DeploymentSecrets;
  /** With which cursors are sealed. */
  sealingKeys: SealingKeys;
  /** The public address until a request arrives with the one that the gateway saw. */
  baseUrl: string;
  /** The deployment has fixed its address; what the gateway reports is ignored. */
  baseUrlFixed: boolean;
  /** Requests to addresses that tenants name. */
  outbound: GuardedFetch;
  keysRotated(): void;
  /** Nothing stored needs the previous secret any more. */
  resealed(): Promise<void>;
  /** True while the maker of a link may let its user in. */
  mayLetIn(link: { tenantId: string; userId: string; madeBy: string }): Promise<boolean>;
  signedIn(tenantId: string, userId: string): void;
  signInRefused(refusal: Refusal, origin: AttemptOrigin): void;
  /** The metadata document of a client cannot be used. */
  documentRefused(address: string, reason: unknown): void;
  onError(error: unknown): void;
}

const SIGNING_KEY_MAX_AGE_SECONDS = 90 * 86_400;
/** A rotation is announced on the bus; should the event be lost, the database shows it this much later. */
const KEYS_FRESH_MS = 30_000;

export class AuthServer {
  readonly clients: Clients;
  readonly users: Users;
  readonly domains: TenantDomains;
  readonly operatorAudit: OperatorAudit;
  readonly identityProviders: SingleSignOnAdministration;
  readonly #singleSignOn: SingleSignOn;
  readonly #providerSecrets: ProviderSecrets;
  readonly mail: Mail;
  readonly #options: AuthServerOptions;
  readonly #store: AuthStore;
  readonly #keys: Keys;
  readonly #presentedTokens = new PresentedTokens();
  readonly #providers = new LRUCache<string, Provider>({ max: 20 });
  #ring: { loadedAt: number; ring: Promise<KeyRing> } | null = null;

  /** The public address: the one that the gateway reported last, unless the deployment has fixed it. */
  #baseUrl: string;

  constructor(options: AuthServerOptions) {
    this.#options = options;
    this.#baseUrl = options.baseUrl;
    this.#store = options.store;
    const vault = new Vault(options.secrets);
    this.#keys = new Keys(options.store, vault);
    this.#providerSecrets = new ProviderSecrets(options.store, vault);
    this.clients = new Clients(options.store, options.source, options);
    this.operatorAudit = new OperatorAudit(options.store.trail, (after, take) => options.source.tenants(after, take));
    this.domains = new TenantDomains(options.store, this.clients);
    const openid = new OpenIdClient(options.outbound);
    this.#singleSignOn = new SingleSignOn({
      ...options,
      clients: this.clients,
      openid,
      secrets: this.#providerSecrets,
    });
    this.identityProviders = new SingleSignOnAdministration({
      store: options.store,
      clients: this.clients,
      openid,
      secrets: this.#providerSecrets,
      baseUrl: () => this.#baseUrl,
    });
    const baseUrl = () => this.#baseUrl;
    this.mail = new Mail(options.mail, {
      store: options.store,
      clients: this.clients,
      vault,
      mayHavePassword: async (user) => (await this.#singleSignOn.replacesPassword(user)) === null,
      baseUrl,
    });
    this.users = new Users(options.store, this.clients, {
      ...options,
      singleSignOn: this.#singleSignOn,
      outbox: this.mail.outbox,
      baseUrl,
    });
  }

  /** Fails unless keys exist and can be opened: then this node must not report that it is ready. */
  async start(): Promise<void> {
    await this.#keys.ensure(SIGNING_KEY_MAX_AGE_SECONDS);
    await this.#currentKeys();
  }

  /** Periodic work: replaces old keys, catches up on origins. */
  async maintain(): Promise<void> {
    if (await this.#keys.ensure(SIGNING_KEY_MAX_AGE_SECONDS)) this.#announceKeys();
    await this.clients.refreshAllOrigins();
  }

  /** Periodic work: sends entries of audit trails that data has not got yet. */
  sendEntries(): Promise<void> {
    return this.#store.trail.sendStored();
  }

  /** Periodic work, each minute: deletes expired rows. */
  clean(): Promise<void> {
    return this.#store.deleteExpired();
  }

  async rotateKeys(): Promise<void> {
    await this.#keys.rotate();
    this.#announceKeys();
  }

  /** Seals everything stored with the deployment's present secret, so that the previous one can be given up. */
  async reseal(): Promise<number> {
    const changed = (await this.#keys.reseal()) + (await this.#providerSecrets.reseal());
    await this.#options.resealed();
    return changed;
  }

  forgetKeys(): void {
    this.#ring = null;
  }

  async publicKeys(): Promise<PublicKey[]> {
    return publicKeys(await this.#currentKeys());
  }

  /** Answers a request; 503 while the database or another service is away. */
  async handle(request: HttpRequest): Promise<HttpReply> {
    try {
      return await this.#handle(request);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      this.#options.onError(error);
      return unavailableReply(request);
    }
  }

  async #handle(request: HttpRequest): Promise<HttpReply> {
    const ring = await this.#currentKeys();
    if (!this.#options.baseUrlFixed) this.#baseUrl = baseUrl(request, this.#baseUrl);
    return handle(
      {
        provider: this.#provider(this.#baseUrl, ring),
        ring,
        clients: this.clients,
        factors: this.#factors(this.#baseUrl, ring),
        singleSignOn: this.#singleSignOn,
        store: this.#store,
        presentedTokens: this.#presentedTokens,
        checkGrants: (checked) => this.checkGrants(checked),
        mail: this.mail,
        demoPassword: this.#options.demoPassword,
        stopMails: this.#options.stopMails,
        mayLetIn: this.#options.mayLetIn,
        revokeUser: (tenantId, userId) => this.users.revoke(tenantId, userId),
        grantsEnded: this.#options.grantsEnded,
        revokeConnection: async (user, connectionId) =>
          (await this.users.revokeConnection(user, connectionId)) !== null,
        signedIn: this.#options.signedIn,
        signInRefused: this.#options.signInRefused,
      },
      request,
    );
  }

  /** The user whose calendar the link with this token shows at this moment; null: nobody's. */
  async calendarOf(token: string): Promise<AuthActions['auth.calendarLinks.find']['result']> {
    const found = await this.#store.calendarLinks.userOf(hashLinkToken(token));
    const tenant = found && (await this.clients.tenant({ tenantId: found.tenantId }));
    if (!found || !tenant || tenant.suspended) return null;
    const user = await this.#options.user(found);
    return user?.active && user.apiEnabled ? { ...found, tenantName: tenant.name } : null;
  }

  /** For each grant, in the order of the request, whether it is live. */
  checkGrants(checked: GrantCheck): Promise<GrantState[]> {
    return checkGrants(this.#store, this.clients, checked, this.#options.secondFactor);
  }

  /** Tells the gateways of grants that another service has ended. One that is still there is none of them. */
  async noteEnded(grantIds: readonly string[]): Promise<void> {
    const stored = await Promise.all(grantIds.map((id) => this.#store.grants.payload(id)));
    const ended = grantIds.filter((_, index) => stored[index] === null);
    if (ended.length > 0) this.#options.grantsEnded(ended);
  }

  connections(request: RequestContext, call: OperationInput<'me.connections.list'>): Promise<OperationReply> {
    const parts = { store: this.#store, clients: this.clients };
    return listConnections(parts, this.#options.sealingKeys, request, call);
  }

  async addDeprecatedUses(uses: AuthActions['auth.deprecatedUses.add']['params']['uses']): Promise<void> {
    for (const [tenantId, ofTenant = []] of Object.entries(Object.groupBy(uses, (use) => use.tenantId)))
      await this.#store.deprecatedUses.add(tenantId, ofTenant);
  }

  deprecatedUses(
    asked: AuthActions['auth.deprecatedUses.list']['params'],
  ): Promise<AuthActions['auth.deprecatedUses.list']['result']> {
    return listDeprecatedUses({ store: this.#store, clients: this.clients }, asked);
  }

  #announceKeys(): void {
    this.forgetKeys();
    this.#options.keysRotated();
  }

  #currentKeys(): Promise<KeyRing> {
    const known = this.#ring;
    if (known && performance.now() - known.loadedAt <= KEYS_FRESH_MS) return known.ring;
    const ring = this.#keys.load();
    this.#ring = { loadedAt: performance.now(), ring };
    ring.catch(() => {
      this.#ring = known;
    });
    return ring;
  }

  #factors(issuer: string, ring: KeyRing): SecondFactors {
    return new SecondFactors(this.#store, issuer, ring, { ...this.#options, clients: this.clients });
  }

  #provider(issuer: string, ring: KeyRing): Provider {
    const key = `${issuer} ${ring.generation}`;
    let provider = this.#providers.get(key);
    if (!provider) {
      provider = createProvider(issuer, ring, {
        store: this.#store,
        clients: this.clients,
        presentedTokens: this.#presentedTokens,
        user: this.#options.user,
        secondFactorDemanded: (user) => demandsSecondFactor({ ...this.#options, clients: this.clients }, user),
        grantsEnded: this.#options.grantsEnded,
        outbound: this.#options.outbound,
        documentRefused: this.#options.documentRefused,
        onError: this.#options.onError,
      });
      this.#providers.set(key, provider);
    }
    return provider;
  }
}
