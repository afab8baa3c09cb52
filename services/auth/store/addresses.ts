/** Changed mail addresses: the links that confirm a change, and those that undo it. */
import { platformTime } from '../../../lib/values/clock.ts';
import { mailAddress } from '../../../lib/values/mail-address.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import type { Database } from '../../../mixins/database/database.ts';
import type { Outbox } from '../mail/outbox.ts';
import {
  type AddressLink,
  addressLink,
  applyAddress,
  claimAddressLink,
  deleteFactorsSince,
  dropPendingAddress,
  forgetAddressLinks,
  holdPendingAddress,
  insertAddressLink,
  type PendingAddress,
  restoreAddress,
} from './addresses.sql.ts';
import type { AuditEntries } from './audit-entries.ts';
import { forgetPasswordLinks, holdCredential, type StoredUser } from './credentials.sql.ts';
import { addressChanged } from './entries.ts';
import { endGrantsOfUser } from './grants.ts';

/** `notNotified`: no undo link has been sent to the earlier address. `spent`: the link is not valid any more. */
type Confirmed = 'confirmed' | 'notNotified' | 'spent';

type UndoLink = AddressLink & { readonly earlierAddress: string };

interface Undone {
  /** Grants that ended. */
  readonly ended: string[];
  /** The user has to choose a new password. */
  readonly passwordReplaced: boolean;
}

export class Addresses {
  readonly #database: Database;
  readonly #trail: AuditEntries;

  constructor(database: Database, trail: AuditEntries) {
    this.#database = database;
    this.#trail = trail;
  }

  async createLink(link: AddressLink & { tokenHash: Buffer }, validSeconds: number): Promise<void> {
    await this.#database.shared('auth', link.tenantId, (tx) => tx.query(insertAddressLink(link, validSeconds)));
  }

  /** A live link of a change that is pending, or has taken effect and can be undone. */
  byLink(tokenHash: Buffer): Promise<AddressLink | null> {
    return this.#database.login((tx) => tx.first<AddressLink>(addressLink(tokenHash)));
  }

  /** The new address takes effect, unless the earlier one could receive mail and the mail with its undo link has not left. */
  confirm(link: AddressLink, tokenHash: Buffer): Promise<Confirmed> {
    const { tenantId, userId, address } = link;
    return this.#trail.change(tenantId, async (tx, note) => {
      const pending = await tx.first<PendingAddress>(holdPendingAddress(link));
      if (!pending) return 'spent';
      if (!pending.notified && mailAddress(pending.email) !== null) return 'notNotified';
      if (!(await tx.first(claimAddressLink(link, tokenHash)))) return 'spent';
      for (const statement of applyAddress(link)) await tx.query(statement);
      await tx.query(forgetPasswordLinks(tenantId, userId));
      await tx.query(forgetAddressLinks(link, null));
      await note(addressChanged(userId, 'confirmAddress', pending.email, address));
      return 'confirmed';
    });
  }

  /**
   * Undoes a change and ends every session of the user. After the change took effect this restores the earlier address
   * and removes credentials that may have been obtained with the new one: the password becomes `passwordHash`, and
   * factors set up since are deleted; the new address is informed by mail. Null: the link is not valid any more.
   */
  undo(link: UndoLink, tokenHash: Buffer, passwordHash: string, outbox: Outbox): Promise<Undone | null> {
    const { tenantId, userId, address, earlierAddress } = link;
    return this.#trail.change(tenantId, async (tx, note) => {
      const before = await tx.first<StoredUser>(holdCredential(tenantId, userId));
      const claimed = await tx.first<{ appliedAt: string | null }>(claimAddressLink(link, tokenHash));
      if (!before || !claimed) return null;
      const { appliedAt } = claimed;
      let passwordReplaced = false;
      if (appliedAt === null) await tx.query(dropPendingAddress(link));
      else {
        const restored = await tx.one<{ hadPassword: boolean }>(restoreAddress(link, earlierAddress, passwordHash));
        passwordReplaced = restored.hadPassword;
        for (const statement of deleteFactorsSince(link, appliedAt)) await tx.query(statement);
        const details = { at: formatTimestamp(platformTime()) };
        await outbox.add(tx, { tenantId, userId, kind: 'addressUndone', address: before.email, details });
      }
      await tx.query(forgetPasswordLinks(tenantId, userId));
      await tx.query(forgetAddressLinks(link, appliedAt));
      const ended = await endGrantsOfUser(tx, tenantId, userId);
      await note(addressChanged(userId, 'undoAddress', address, earlierAddress));
      return { ended, passwordReplaced };
    });
  }
}
