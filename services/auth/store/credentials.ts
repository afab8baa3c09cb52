/** How users sign in, and the single-use links with which they set a password. */
import { and, col, where as equal, fn, Op } from 'sequelize';
import { platformTime } from '../../../lib/values/clock.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import { type Database, sqlState, type Tx } from '../../../mixins/database/database.ts';
import { NOW, on, secondsFromNow } from '../../../mixins/models/sequelize.ts';
import type { Outbox } from '../mail/outbox.ts';
import { CredentialModel } from '../models/credential.ts';
import { PasswordLinkModel } from '../models/password-link.ts';
import { forgetAddressLinks } from './addresses.sql.ts';
import type { AuditEntries, NewAuditEntry } from './audit-entries.ts';
import {
  type Addresses,
  claimLink,
  countInDomainElsewhere,
  credentialByLink,
  credentialByUsedLink,
  credentialByUser,
  credentialForSignIn,
  credentialsByUsername,
  forgetPasswordLinks,
  holdCredential,
  holdPassword,
  insertMailedLink,
  type MailedLink,
  noteInvited,
  type SignInNames,
  type StoredUser,
  saveCredential,
} from './credentials.sql.ts';
import { passwordSet } from './entries.ts';
import { endGrantsOfUser } from './grants.ts';

export interface Credential {
  tenantId: string;
  userId: string;
  username: string;
  email: string;
  passwordHash: string | null;
  active: boolean;
  /** The address of the record, which the user has not confirmed: links go to `email` until then. */
  pendingEmail: string | null;
  /** Of the sign-ins that begin now; an earlier one has ended with all sessions of the user. */
  sessionGeneration: number;
}

/** With where its user has signed in before, of the places that were asked about. */
export interface SignInCredential extends Credential {
  knownBrowser: boolean;
  knownNetwork: boolean;
}

/** Of the user of a link. */
interface LinkedCredential extends Credential {
  /** The user who handed the link over; null: it was sent by mail, or made by an operator. */
  madeBy: string | null;
}

/** Of which tenant the user has to be, by what was typed; null when that says nothing. */
interface Meant {
  meantTenantId: string | null;
}

/** At most as many users of one name are distinguished for an operator. */
const SAME_NAME_MAX = 2;
const ATTRIBUTES = [
  'tenantId',
  'userId',
  'username',
  'email',
  'passwordHash',
  'active',
  'pendingEmail',
  'sessionGeneration',
];

export class Credentials {
  readonly #database: Database;
  readonly #trail: AuditEntries;

  constructor(database: Database, trail: AuditEntries) {
    this.#database = database;
    this.#trail = trail;
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
  byLink(tokenHash: Buffer): Promise<LinkedCredential | null> {
    return this.#database.login((tx) => tx.first<LinkedCredential>(credentialByLink(tokenHash)));
  }

  /** The active user who has set a password with this link and form; null: the link was used otherwise, or not at all. */
  byUsedLink(tokenHash: Buffer, usedWith: Buffer): Promise<Credential | null> {
    return this.#database.login((tx) => tx.first<Credential>(credentialByUsedLink(tokenHash, usedWith)));
  }

  find(tenantId: string, userId: string): Promise<Credential | null> {
    return this.#database.shared('auth', tenantId, (tx) =>
      CredentialModel.findOne({ attributes: ATTRIBUTES, where: { tenantId, userId }, ...on(tx) }),
    );
  }

  /**
   * Creates or updates the credential of a user, with the mails that this causes; false when another user of the tenant
   * has the username. `invite`: who cannot sign in yet is invited, once.
   */
  async save(
    tenantId: string,
    user: SavedUser,
    { outbox, invite }: { outbox: Outbox; invite: boolean },
  ): Promise<boolean> {
    try {
      await this.#database.shared('auth', tenantId, async (tx) => {
        const before = await tx.first<StoredUser>(holdCredential(tenantId, user.userId));
        const addresses = addressesAfter(before, user.email);
        await tx.query(saveCredential(tenantId, { ...user, ...addresses }));
        if (before) await changeAddress(tx, { tenantId, userId: user.userId }, before, addresses, outbox);
        const again = before !== null && !before.canSignIn && addresses.email !== before.email;
        if (!invite || !user.active || before?.canSignIn || (before?.invited && !again)) return;
        await tx.query(noteInvited(tenantId, user.userId));
        await outbox.add(tx, { tenantId, userId: user.userId, kind: 'invitation', address: addresses.email });
      });
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

  /** Stores a link that is sent by mail; false when the user has another address by now. */
  async createMailedLink(link: MailedLink, validSeconds: number): Promise<boolean> {
    const { rowCount } = await this.#database.shared('auth', link.tenantId, (tx) =>
      tx.query(insertMailedLink(link, validSeconds)),
    );
    return rowCount > 0;
  }

  /** `entry`: for the audit trail; a link takes an account over, so none is made without one. */
  async createLink(
    { tenantId, userId, tokenHash }: { tenantId: string; userId: string; tokenHash: Buffer },
    validSeconds: number,
    entry: NewAuditEntry,
  ): Promise<void> {
    const link = { tenantId, userId, tokenHash, expiresAt: secondsFromNow(validSeconds) };
    await this.#trail.change(tenantId, async (tx, note) => {
      await PasswordLinkModel.create(link, on(tx));
      await note(entry);
    });
  }

  /**
   * Uses the link up, sets the password, ends all grants and sessions and informs a user who had a password by mail: all of it,
   * with its entry in the audit trail, or nothing. Returns the grants that ended; null: the link has been used or has expired.
   */
  spendLink(
    { tenantId, userId, tokenHash, usedWith }: UsedLink,
    passwordHash: string,
    outbox: Outbox,
  ): Promise<string[] | null> {
    return this.#trail.change(tenantId, async (tx, note) => {
      // The user before the link, as everything that changes both.
      const held = await tx.first<{ email: string; hadPassword: boolean }>(holdPassword(tenantId, userId));
      const { rowCount: claimed } = await tx.query(claimLink(tenantId, tokenHash, usedWith));
      if (claimed === 0) return null;
      await writePassword(tx, tenantId, userId, passwordHash, tokenHash);
      // A person who knew the old password may still be signed in with it.
      const ended = await endGrantsOfUser(tx, tenantId, userId);
      if (held?.hadPassword) {
        const details = { at: formatTimestamp(platformTime()) };
        await outbox.add(tx, { tenantId, userId, kind: 'passwordChanged', address: held.email, details });
      }
      await note(passwordSet(userId));
      return ended;
    });
  }
}

/** A set-password link and what it was used with. */
interface UsedLink {
  readonly tenantId: string;
  readonly userId: string;
  readonly tokenHash: Buffer;
  readonly usedWith: Buffer;
}

interface SavedUser {
  readonly userId: string;
  readonly username: string;
  readonly email: string;
  readonly active: boolean;
}

const isSame = (one: string, other: string | null): boolean => one.toLowerCase() === other?.toLowerCase();

/**
 * Address of mails after the record has this address. Links go on to the one before until the user has confirmed the new
 * one; a user who cannot sign in yet has nothing to lose, and the first address may have been mistyped.
 */
function addressesAfter(before: StoredUser | null, given: string): Addresses {
  if (!before?.canSignIn || isSame(given, before.email))
    return { email: given, pendingEmail: null, refusedEmail: null };
  const { email, refusedEmail } = before;
  if (isSame(given, refusedEmail)) return { email, pendingEmail: null, refusedEmail };
  return { email, pendingEmail: given, refusedEmail: null };
}

async function changeAddress(
  tx: Tx,
  { tenantId, userId }: { tenantId: string; userId: string },
  before: StoredUser,
  { email, pendingEmail }: Addresses,
  outbox: Outbox,
): Promise<void> {
  const user = { tenantId, userId };
  if (!isSame(email, before.email)) {
    await tx.query(forgetPasswordLinks(tenantId, userId));
    await tx.query(forgetAddressLinks(user, null));
  }
  if (pendingEmail === null ? before.pendingEmail === null : isSame(pendingEmail, before.pendingEmail)) return;
  await tx.query(forgetAddressLinks(user, null));
  if (pendingEmail === null) return;
  const details = { newAddress: pendingEmail, at: formatTimestamp(platformTime()) };
  await outbox.add(tx, { ...user, details, kind: 'addressConfirmation', address: pendingEmail });
  await outbox.add(tx, { ...user, details, kind: 'addressChanged', address: before.email });
}

/** A new password makes every older link useless; the one that it was set with stays as used. */
async function writePassword(
  tx: Tx,
  tenantId: string,
  userId: string,
  passwordHash: string,
  used: Buffer | null = null,
): Promise<void> {
  const where = { tenantId, userId };
  const others = used === null ? where : { ...where, tokenHash: { [Op.ne]: used } };
  await Promise.all([
    CredentialModel.update({ passwordHash, updatedAt: NOW }, { where, ...on(tx) }),
    PasswordLinkModel.destroy({ where: others, ...on(tx) }),
  ]);
}
