/** Changes of mail addresses: links with which a user confirms the new one, or objects from the old one. */
import type { Database } from '../../../mixins/database/database.ts';
import { type AddressLink, addressLink, claimAddressLink, insertAddressLink, settleAddress } from './addresses.sql.ts';
import { forgetLinks } from './credentials.sql.ts';

export class Addresses {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async createLink(link: AddressLink & { tokenHash: Buffer }, validSeconds: number): Promise<void> {
    await this.#database.shared('auth', link.tenantId, (tx) => tx.query(insertAddressLink(link, validSeconds)));
  }

  /** A live link; null also when the address has been confirmed, or another one waits by now. */
  byLink(tokenHash: Buffer): Promise<AddressLink | null> {
    return this.#database.login((tx) => tx.first<AddressLink>(addressLink(tokenHash)));
  }

  /**
   * Uses the link up and confirms the address or drops it, both or neither; false when somebody was faster. Links that
   * went to the earlier address end when it is not the user's any more.
   */
  settle(link: AddressLink, tokenHash: Buffer): Promise<boolean> {
    const { tenantId, userId, purpose } = link;
    return this.#database.shared('auth', tenantId, async (tx) => {
      if (!(await tx.first(claimAddressLink(tenantId, tokenHash)))) return false;
      if (!(await tx.first(settleAddress(link)))) return false;
      const forgotten = forgetLinks(tenantId, userId, purpose === 'confirm' ? 'all' : 'address');
      for (const statement of forgotten) await tx.query(statement);
      return true;
    });
  }
}
