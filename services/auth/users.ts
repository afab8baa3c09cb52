/** Users of all tenants: their credentials, their set-password links, and the end of their grants. */
import type { AuthActions } from '../../contracts/auth.ts';
import { PlatformError, violation } from '../../lib/errors/platform-error.ts';
import type { Clients } from './clients.ts';
import type { Outbox } from './mail/outbox.ts';
import {
  createLinkToken,
  HANDED_OVER_SECONDS,
  hashLinkToken,
  hashPassword,
  LINK_VALID_SECONDS,
  newLinkToken,
  verifyPassword,
} from './passwords.ts';
import type { SingleSignOn } from './single-sign-on/single-sign-on.ts';
import type { NewAuditEntry } from './store/audit-entries.ts';
import type { Credential } from './store/credentials.ts';
import type { FactorCounts } from './store/factors.ts';
import type { AuthStore } from './store/store.ts';
import { signInName } from './usernames.ts';

type SyncUser = AuthActions['auth.users.sync']['params']['users'][number];

export interface UserNotices {
  grantsEnded(grantIds: string[]): void;
}

interface UserParts extends UserNotices {
  readonly singleSignOn: Pick<SingleSignOn, 'isOnlyWay' | 'replacesPassword'>;
  readonly outbox: Outbox;
  baseUrl(): string;
}

const usernameTaken = (): PlatformError =>
  new PlatformError('UNIQUE_VALUE_CONFLICT', 'The username is taken.', {
    details: { field: 'username' },
    errors: [violation('/username', 'UNIQUE_VALUE_CONFLICT', 'The username is taken.', { field: 'username' })],
  });

export class Users {
  readonly #store: AuthStore;
  readonly #clients: Clients;
  readonly #options: UserParts;

  constructor(store: AuthStore, clients: Clients, options: UserParts) {
    this.#store = store;
    this.#clients = clients;
    this.#options = options;
  }

  /**
   * Creates and updates the credentials of User records. A username that another user of the tenant has is refused:
   * UNIQUE_VALUE_CONFLICT, `details.field` = username. Returns what each one types to sign in, by username.
   */
  async sync(tenantId: string, users: readonly SyncUser[], checkOnly = false): Promise<Record<string, string>> {
    if (checkOnly) {
      for (const user of users) {
        const holder = await this.#store.credentials.byUsername(tenantId, user.username);
        if (holder && holder.userId !== user.userId) throw usernameTaken();
      }
      return {};
    }
    const names: [string, string][] = [];
    for (const user of users) {
      const credential = await this.#sync(tenantId, user);
      if (credential) names.push([user.username, await this.#signInName(credential)]);
    }
    return Object.fromEntries(names);
  }

  /** `entry`: for the audit trail, when something ended. */
  async revoke(tenantId: string, userId: string, entry: NewAuditEntry | null = null): Promise<number> {
    return this.#ended(await this.#store.grants.endOfUser(tenantId, userId, entry));
  }

  #ended(grantIds: string[]): number {
    if (grantIds.length > 0) this.#options.grantsEnded(grantIds);
    return grantIds.length;
  }

  /** Ends one connection of a user; the client that had it, null when there is no such connection. */
  async revokeConnection(user: { tenantId: string; userId: string }, connectionId: string): Promise<string | null> {
    const clientId = await this.#store.grants.endConnection(user, connectionId);
    if (clientId !== null) this.#options.grantsEnded([connectionId]);
    return clientId;
  }

  /** Removes every second factor of a user who has lost them, and ends all sessions. Names the user like a link. */
  async resetFactors(username: string, tenantId: string | undefined): Promise<FactorCounts> {
    const user = await this.#named(username, tenantId);
    const { had, ended } = await this.#store.factors.reset(user);
    this.#ended(ended);
    return had;
  }

  /**
   * Forgets who a user is at identity providers, so that the next sign-in connects them anew; returns how many identities
   * that were. Names the user like a link.
   */
  async removeIdentities(username: string, tenantId: string | undefined): Promise<number> {
    const user = await this.#named(username, tenantId);
    const { removed, ended } = await this.#store.identities.removeOf(user.tenantId, user.userId);
    this.#ended(ended);
    return removed;
  }

  /**
   * A link for an operator to hand over. Throws PARAMETER_INVALID when no active user has the username, and without a
   * tenant when users of several do.
   */
  async createPasswordLink(
    username: string,
    tenantId: string | undefined,
  ): Promise<{ url: string; validSeconds: number; signInName: string }> {
    const credential = await this.#named(username, tenantId);
    const provider = await this.#options.singleSignOn.replacesPassword(credential);
    if (provider)
      throw new PlatformError(
        'PARAMETER_INVALID',
        `The user signs in with the identity provider ${provider.meta.apiName} alone, and has no password.`,
      );
    const signInName = await this.#signInName(credential);
    return { url: await this.#passwordLink(credential), validSeconds: LINK_VALID_SECONDS, signInName };
  }

  /** A link that counts once its hash is stored. */
  async prepareLink(tenantId: string, userId: string): Promise<AuthActions['auth.users.prepareLink']['result']> {
    const credential = await this.#store.credentials.find(tenantId, userId);
    if (!credential?.active) return { refused: 'inactive' };
    if (await this.#options.singleSignOn.replacesPassword(credential)) return { refused: 'noPassword' };
    const token = newLinkToken();
    return {
      url: `${this.#options.baseUrl()}/password/${token}`,
      tokenHash: hashLinkToken(token).toString('base64url'),
      validSeconds: HANDED_OVER_SECONDS,
      signInName: await this.#signInName(credential),
    };
  }

  /** The reason why the user gets no invitation; null: they may. */
  async mayInvite(tenantId: string, userId: string): Promise<AuthActions['auth.users.mayInvite']['result']> {
    if (!this.#options.outbox.enabled) return { refused: 'mailsOff' };
    const credential = await this.#store.credentials.find(tenantId, userId);
    if (!credential?.active) return { refused: 'inactive' };
    return { refused: (await this.#options.singleSignOn.replacesPassword(credential)) ? 'noPassword' : null };
  }

  #signInName(credential: Credential): Promise<string> {
    return signInName(credential, { store: this.#store, clients: this.#clients });
  }

  async #named(username: string, tenantId: string | undefined): Promise<Credential> {
    const { credentials } = this.#store;
    const found =
      tenantId === undefined
        ? await credentials.ofAnyTenant(username)
        : [await credentials.byUsername(tenantId, username)];
    if (found.length > 1)
      throw new PlatformError('PARAMETER_INVALID', 'Several tenants have a user of this name: give tenantId as well.');
    const [credential] = found;
    if (!credential?.active) throw new PlatformError('PARAMETER_INVALID', 'No active user has this username.');
    return credential;
  }

  /** The credentials of an active user. One without a password, which is given here or chosen, is invited. */
  async #sync(tenantId: string, user: SyncUser): Promise<Credential | null> {
    const { outbox, singleSignOn } = this.#options;
    const invite =
      user.password === undefined && user.invite !== false && !(await singleSignOn.isOnlyWay(tenantId, user.username));
    if (!(await this.#store.credentials.save(tenantId, user, { outbox, invite }))) throw usernameTaken();
    if (!user.active) {
      await this.revoke(tenantId, user.userId);
      return null;
    }
    const credential = await this.#store.credentials.find(tenantId, user.userId);
    if (!credential || user.password === undefined) return credential;
    const same = credential.passwordHash !== null && (await verifyPassword(credential.passwordHash, user.password));
    if (!same) await this.#store.credentials.setPassword(tenantId, user.userId, await hashPassword(user.password));
    return credential;
  }

  async #passwordLink({ tenantId, userId }: Credential): Promise<string> {
    return `${this.#options.baseUrl()}/password/${await createLinkToken(this.#store, tenantId, userId)}`;
  }
}
