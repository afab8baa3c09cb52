/**
 * The authorization server of one node: the keys in the database, one provider per public address, and what the other
 * services call. Everything it holds in memory can be lost at any moment.
 */
import { LRUCache } from 'lru-cache';
import type { Provider } from 'oidc-provider';
import type { AuthActions, GrantState, HttpReply, HttpRequest } from '../../contracts/auth.ts';
import { PlatformError, violation } from '../../lib/errors/platform-error.ts';
import type { RateLimitOverrides } from '../../lib/schema/snapshot.ts';
import { Clients, type KnownClient, type TenantSource } from './clients.ts';
import { baseUrl, handle } from './http.ts';
import { type KeyRing, Keys, type PublicKey, publicKeys } from './keys.ts';
import { createLinkToken, hashPassword, LINK_VALID_SECONDS, verifyPassword } from './passwords.ts';
import { PresentedTokens } from './provider/presented-tokens.ts';
import { createProvider } from './provider/provider.ts';
import { unavailableReply } from './reply.ts';
import type { Credential } from './store/credentials.ts';
import type { AuthStore } from './store/store.ts';
import { isUnavailable } from './unavailable.ts';

export interface AuthServerOptions {
  store: AuthStore;
  source: TenantSource;
  secret: string | null;
  /** The public address until a request arrives with the one that the gateway saw. */
  baseUrl: string;
  /** The deployment has fixed its address; what the gateway reports is ignored. */
  baseUrlFixed: boolean;
  grantsEnded(grantIds: string[]): void;
  keysRotated(): void;
  signedIn(tenantId: string, userId: string): void;
  /** Sends a set-password link to its user. */
  sendPasswordLink(user: { username: string; email: string }, url: string): void;
  onError(error: unknown): void;
}

const SIGNING_KEY_MAX_AGE_SECONDS = 90 * 86_400;
/** A rotation is announced on the bus; should the event be lost, the database shows it this much later. */
const KEYS_FRESH_MS = 30_000;

const NO_OVERRIDES: RateLimitOverrides = { connection: null, tenant: null, daily: null, concurrency: null };

const usernameTaken = (): PlatformError =>
  new PlatformError('UNIQUE_VALUE_CONFLICT', 'The username is taken.', {
    details: { field: 'username' },
    errors: [violation('/username', 'UNIQUE_VALUE_CONFLICT', 'The username is taken.', { field: 'username' })],
  });

type SyncUser = AuthActions['auth.users.sync']['params']['users'][number];

export class AuthServer {
  readonly clients: Clients;
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
    this.#keys = new Keys(options.store, options.secret);
    this.clients = new Clients(options.store, options.source);
  }

  /** Fails unless keys exist and can be opened: then this node must not report that it is ready. */
  async start(): Promise<void> {
    await this.#keys.ensure(SIGNING_KEY_MAX_AGE_SECONDS);
    await this.#currentKeys();
  }

  /** Periodic work: replaces old keys, deletes what has expired, catches up on origins. */
  async maintain(): Promise<void> {
    if (await this.#keys.ensure(SIGNING_KEY_MAX_AGE_SECONDS)) this.#announceKeys();
    await this.#store.deleteExpired();
    await this.clients.refreshAllOrigins();
  }

  async rotateKeys(): Promise<void> {
    await this.#keys.rotate();
    this.#announceKeys();
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
      return unavailableReply();
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
        store: this.#store,
        presentedTokens: this.#presentedTokens,
        revokeUser: (tenantId, userId) => this.revokeUser(tenantId, userId),
        signedIn: this.#options.signedIn,
      },
      request,
    );
  }

  /** Whether grants are live, in the order of the request; a grant of another user, client or tenant is inactive. */
  async checkGrants(grants: AuthActions['auth.grants.check']['params']['grants']): Promise<GrantState[]> {
    const byTenant = Map.groupBy(grants, (grant) => grant.tenantId);
    const live = new Map<string, { userId: string; clientId: string }>();
    await Promise.all(
      [...byTenant].map(async ([tenantId, requested]) => {
        const found = await this.#store.grants.live(
          tenantId,
          requested.map((grant) => grant.grantId),
        );
        for (const grant of found) live.set(`${tenantId} ${grant.grantId}`, grant);
      }),
    );
    return Promise.all(
      grants.map(async (grant) => {
        const found = live.get(`${grant.tenantId} ${grant.grantId}`);
        const [tenant, client] = await Promise.all([
          this.clients.tenant({ tenantId: grant.tenantId }),
          this.clients.find(grant.clientId),
        ]);
        const usable = client !== null && (client.tenantId === null || client.tenantId === grant.tenantId);
        const active = tenant !== null && usable && found?.userId === grant.userId && found.clientId === grant.clientId;
        return grantState(grant.grantId, active, tenant, usable ? client : null);
      }),
    );
  }

  /**
   * Creates and updates the credentials of User records. A username that another user of the platform has is refused:
   * UNIQUE_VALUE_CONFLICT, `details.field` = username.
   */
  async syncUsers(tenantId: string, users: readonly SyncUser[], checkOnly = false): Promise<number> {
    if (checkOnly) {
      for (const user of users) {
        const holder = await this.#store.credentials.byUsername(user.username);
        if (holder && holder.userId !== user.userId) throw usernameTaken();
      }
      return 0;
    }
    for (const user of users) await this.#syncUser(tenantId, user);
    return users.length;
  }

  async revokeUser(tenantId: string, userId: string): Promise<number> {
    const ended = await this.#store.grants.endOfUser(tenantId, userId);
    if (ended.length) this.#options.grantsEnded(ended);
    return ended.length;
  }

  /** A link for an operator to hand over; null when no active user has the username. */
  async createPasswordLink(username: string): Promise<{ url: string; validSeconds: number } | null> {
    const credential = await this.#store.credentials.byUsername(username);
    if (!credential?.active) return null;
    return { url: await this.#passwordLink(credential), validSeconds: LINK_VALID_SECONDS };
  }

  async #syncUser(tenantId: string, user: SyncUser): Promise<void> {
    if (!(await this.#store.credentials.save(tenantId, user))) throw usernameTaken();
    if (!user.active) {
      await this.revokeUser(tenantId, user.userId);
      return;
    }
    const credential = await this.#store.credentials.find(tenantId, user.userId);
    if (!credential) return;
    if (user.password !== undefined) {
      const same = credential.passwordHash !== null && (await verifyPassword(credential.passwordHash, user.password));
      if (!same) await this.#store.credentials.setPassword(tenantId, user.userId, await hashPassword(user.password));
    } else if (
      credential.passwordHash === null &&
      !(await this.#store.credentials.hasLiveLink(tenantId, user.userId))
    ) {
      this.#options.sendPasswordLink(credential, await this.#passwordLink(credential));
    }
  }

  async #passwordLink({ tenantId, userId }: Credential): Promise<string> {
    return `${this.#baseUrl}/password/${await createLinkToken(this.#store, tenantId, userId)}`;
  }

  #announceKeys(): void {
    this.forgetKeys();
    this.#options.keysRotated();
  }

  #currentKeys(): Promise<KeyRing> {
    const known = this.#ring;
    if (known && Date.now() - known.loadedAt <= KEYS_FRESH_MS) return known.ring;
    const ring = this.#keys.load();
    this.#ring = { loadedAt: Date.now(), ring };
    ring.catch(() => {
      this.#ring = known;
    });
    return ring;
  }

  #provider(issuer: string, ring: KeyRing): Provider {
    const key = `${issuer} ${ring.generation}`;
    let provider = this.#providers.get(key);
    if (!provider) {
      provider = createProvider(issuer, ring, {
        store: this.#store,
        clients: this.clients,
        presentedTokens: this.#presentedTokens,
        grantsEnded: this.#options.grantsEnded,
        onError: this.#options.onError,
      });
      this.#providers.set(key, provider);
    }
    return provider;
  }
}

function grantState(
  grantId: string,
  active: boolean,
  tenant: { suspended: boolean; rateLimits: RateLimitOverrides } | null,
  client: KnownClient | null,
): GrantState {
  const ofClient = client?.meta?.rateLimits ?? NO_OVERRIDES;
  const ofTenant = tenant?.rateLimits ?? NO_OVERRIDES;
  return {
    grantId,
    active,
    tenantSuspended: tenant?.suspended ?? false,
    clientActive: client?.active ?? false,
    clientName: client?.name ?? '',
    agent: client?.meta?.agent ?? false,
    ipRanges: [...(client?.meta?.ipRanges ?? [])],
    rateLimits: {
      client: { connection: ofClient.connection, concurrency: ofClient.concurrency },
      tenant: {
        connection: ofTenant.connection,
        tenant: ofTenant.tenant,
        daily: ofTenant.daily,
        concurrency: ofTenant.concurrency,
      },
    },
  };
}
