/** Users of all tenants: their credentials, their set-password links, and the end of their grants. */
import type { AuthActions } from '../../contracts/auth.ts';
import { PlatformError, violation } from '../../lib/errors/platform-error.ts';
import type { FactorChange } from './factors/events.ts';
import { createLinkToken, hashPassword, LINK_VALID_SECONDS, verifyPassword } from './passwords.ts';
import type { Credential } from './store/credentials.ts';
import type { FactorCounts } from './store/factors.ts';
import type { AuthStore } from './store/store.ts';

type SyncUser = AuthActions['auth.users.sync']['params']['users'][number];

export interface UserNotices {
  grantsEnded(grantIds: string[]): void;
  factorChanged(change: FactorChange): void;
  /** Sends a set-password link to its user. */
  sendPasswordLink(user: { username: string; email: string }, url: string): void;
}

const usernameTaken = (): PlatformError =>
  new PlatformError('UNIQUE_VALUE_CONFLICT', 'The username is taken.', {
    details: { field: 'username' },
    errors: [violation('/username', 'UNIQUE_VALUE_CONFLICT', 'The username is taken.', { field: 'username' })],
  });

export class Users {
  readonly #store: AuthStore;
  readonly #options: UserNotices & { baseUrl(): string };

  constructor(store: AuthStore, options: UserNotices & { baseUrl(): string }) {
    this.#store = store;
    this.#options = options;
  }

  /**
   * Creates and updates the credentials of User records. A username that another user of the tenant has is refused:
   * UNIQUE_VALUE_CONFLICT, `details.field` = username.
   */
  async sync(tenantId: string, users: readonly SyncUser[], checkOnly = false): Promise<number> {
    if (checkOnly) {
      for (const user of users) {
        const holder = await this.#store.credentials.byUsername(tenantId, user.username);
        if (holder && holder.userId !== user.userId) throw usernameTaken();
      }
      return 0;
    }
    for (const user of users) await this.#sync(tenantId, user);
    return users.length;
  }

  async revoke(tenantId: string, userId: string): Promise<number> {
    const ended = await this.#store.grants.endOfUser(tenantId, userId);
    if (ended.length) this.#options.grantsEnded(ended);
    return ended.length;
  }

  /** Removes every second factor of a user who has lost them, and ends all sessions. Names the user like a link. */
  async resetFactors(username: string, tenantId: string | undefined): Promise<FactorCounts> {
    const user = await this.#named(username, tenantId);
    const removed = await this.#store.factors.removeAll(user);
    await this.revoke(user.tenantId, user.userId);
    this.#options.factorChanged({ tenantId: user.tenantId, userId: user.userId, actorId: null, event: 'reset' });
    return removed;
  }

  /**
   * A link for an operator to hand over. Throws PARAMETER_INVALID when no active user has the username, and without a
   * tenant when users of several do.
   */
  async createPasswordLink(
    username: string,
    tenantId: string | undefined,
  ): Promise<{ url: string; validSeconds: number }> {
    const credential = await this.#named(username, tenantId);
    return { url: await this.#passwordLink(credential), validSeconds: LINK_VALID_SECONDS };
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

  async #sync(tenantId: string, user: SyncUser): Promise<void> {
    if (!(await this.#store.credentials.save(tenantId, user))) throw usernameTaken();
    if (!user.active) {
      await this.revoke(tenantId, user.userId);
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
    return `${this.#options.baseUrl()}/password/${await createLinkToken(this.#store, tenantId, userId)}`;
  }
}
