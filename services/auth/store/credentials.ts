/** How users sign in, and the single-use links with which they set a password. */
import { and, col, where as equal, fn, Op } from 'sequelize';
import { type Database, sqlState, type Tx } from '../../../mixins/database/database.ts';
import { NOW, on, secondsFromNow } from '../../../mixins/models/sequelize.ts';
import { CredentialModel } from '../models/credential.ts';
import { PasswordLinkModel } from '../models/password-link.ts';
import {
  claimLink,
  countInDomainElsewhere,
  credentialByLink,
  credentialByUser,
  credentialForSignIn,
  credentialsByUsername,
  type SignInNames,
  saveCredential,
} from './credentials.sql.ts';

export interface Credential {
  tenantId: string;
  userId: string;
  username: string;
  email: string;
  passwordHash: string | null;
  active: boolean;
  /** From before there were domains: the name alone means this user, unless it is in the domain of another tenant. */
  foundByName: boolean;
}

/** With where its user has signed in before, of the places that were asked about. */
export interface SignInCredential extends Credential {
  knownBrowser: boolean;
  knownNetwork: boolean;
}

/** Of which tenant the user has to be, by what was typed; null when that says nothing. */
interface Meant {
  meantTenantId: string | null;
}

/** At most as many users of one name are distinguished for an operator. */
const SAME_NAME_MAX = 2;
const ATTRIBUTES = ['tenantId', 'userId', 'username', 'email', 'passwordHash', 'active', 'foundByName'];

export class Credentials {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async byUsername(tenantId: string, username: string): Promise<Credential | null> {
    const where = and({ tenantId }, equal(fn('lower', col('username')), fn('lower', username)));
    return this.#database.shared('auth', tenantId, (tx) =>
      CredentialModel.findOne({ attributes: ATTRIBUTES, where, ...on(tx) }),
    );
  }

  /** For operators alone: two users at most, of any tenants. */
  ofAnyTenant(username: string): Promise<Credential[]> {
    return this.#database.login((tx) => tx.all<Credential>(credentialsByUsername(username, SAME_NAME_MAX)));
  }

  /** The tenant is not known yet: what was typed is all that the sign-in page has. */
  async forSignIn(names: SignInNames): Promise<{ tenantId: string | null; credential: SignInCredential | null }> {
    const { meantTenantId, ...found } = await this.#database.login((tx) =>
      tx.one<Meant & (SignInCredential | Record<keyof SignInCredential, null>)>(credentialForSignIn(names)),
    );
    const credential = found.userId === null ? null : found;
    return { tenantId: credential?.tenantId ?? meantTenantId, credential };
  }

  /** For operators alone: how many users of other tenants have a name in this domain. */
  async inDomainElsewhere(tenantId: string, domain: string): Promise<number> {
    return (await this.#database.login((tx) => tx.one<{ count: number }>(countInDomainElsewhere(tenantId, domain))))
      .count;
  }

  /** The tenant is not known yet: the provider knows an account by the user's id alone. */
  byUser(userId: string): Promise<Credential | null> {
    return this.#database.login((tx) => tx.first<Credential>(credentialByUser(userId)));
  }

  /** The active user of a live link. The tenant is not known yet: the link carries nothing but its token. */
  byLink(tokenHash: Buffer): Promise<Credential | null> {
    return this.#database.login((tx) => tx.first<Credential>(credentialByLink(tokenHash)));
  }

  find(tenantId: string, userId: string): Promise<Credential | null> {
    return this.#database.shared('auth', tenantId, (tx) =>
      CredentialModel.findOne({ attributes: ATTRIBUTES, where: { tenantId, userId }, ...on(tx) }),
    );
  }

  /** Creates or updates the credential of a user; false when another user of the tenant has the username. */
  async save(
    tenantId: string,
    user: { userId: string; username: string; email: string; active: boolean },
  ): Promise<boolean> {
    try {
      await this.#database.shared('auth', tenantId, (tx) => tx.query(saveCredential(tenantId, user)));
      return true;
    } catch (error) {
      if (sqlState(error) === '23505') return false;
      throw error;
    }
  }

  async setPassword(tenantId: string, userId: string, passwordHash: string): Promise<void> {
    await this.#database.shared('auth', tenantId, (tx) => writePassword(tx, tenantId, userId, passwordHash));
  }

  async recordSignIn(tenantId: string, userId: string): Promise<void> {
    await this.#database.shared('auth', tenantId, (tx) =>
      CredentialModel.update({ lastSignInAt: NOW }, { where: { tenantId, userId }, ...on(tx) }),
    );
  }

  async createLink(tenantId: string, userId: string, tokenHash: Buffer, validSeconds: number): Promise<void> {
    const link = { tenantId, userId, tokenHash, expiresAt: secondsFromNow(validSeconds) };
    await this.#database.shared('auth', tenantId, (tx) => PasswordLinkModel.create(link, on(tx)));
  }

  async hasLiveLink(tenantId: string, userId: string): Promise<boolean> {
    const where = { tenantId, userId, expiresAt: { [Op.gt]: NOW } };
    const live = await this.#database.shared('auth', tenantId, (tx) =>
      PasswordLinkModel.findOne({ attributes: ['userId'], where, ...on(tx) }),
    );
    return live !== null;
  }

  /** Uses the link up and sets the password, both or neither; false when the link has been used or has expired. */
  spendLink(tenantId: string, tokenHash: Buffer, passwordHash: string): Promise<boolean> {
    return this.#database.shared('auth', tenantId, async (tx) => {
      const claimed = await tx.first<{ userId: string }>(claimLink(tenantId, tokenHash));
      if (!claimed) return false;
      await writePassword(tx, tenantId, claimed.userId, passwordHash);
      return true;
    });
  }
}

/** A new password makes every older link useless. */
async function writePassword(tx: Tx, tenantId: string, userId: string, passwordHash: string): Promise<void> {
  const where = { tenantId, userId };
  await Promise.all([
    CredentialModel.update({ passwordHash, updatedAt: NOW }, { where, ...on(tx) }),
    PasswordLinkModel.destroy({ where, ...on(tx) }),
  ]);
}
