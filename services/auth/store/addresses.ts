/** Changes of mail addresses: links with which a user confirms the new one, and agrees or objects from the old one. */
import type { Database, Tx } from '../../../mixins/database/database.ts';
import {
  type AddressDecision,
  type AddressLink,
  type AddressOutcome,
  addressLink,
  type ChangedAddress,
  claimAddressLink,
  decideAddress,
  insertAddressLink,
  settleAddress,
  UNOPPOSED_ADDRESSES,
} from './addresses.sql.ts';
import type { AuditEntries } from './audit-entries.ts';
import { awaitConsent, forgetLinks } from './credentials.sql.ts';
import { addressDecided, addressUnopposed } from './entries.ts';

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

  /** A live link; null also when the address has been confirmed, or another one waits by now. */
  byLink(tokenHash: Buffer): Promise<AddressLink | null> {
    return this.#database.login((tx) => tx.first<AddressLink>(addressLink(tokenHash)));
  }

  /**
   * Uses the link up and does what its user wants, both or neither. `settled`: the new address counts from now on, or is
   * dropped; `waiting`: the other side has not confirmed it yet; null: another request was faster.
   */
  decide(link: AddressLink, tokenHash: Buffer, decision: AddressDecision): Promise<AddressOutcome | null> {
    return this.#trail.change(link.tenantId, async (tx, note) => {
      if (!(await tx.first(claimAddressLink(link.tenantId, tokenHash)))) return null;
      const decided = await tx.first<{ settlesByItself: boolean }>(decideAddress(link, decision));
      if (!decided) return null;
      await note(addressDecided(link, decision));
      if (decision !== 'object') {
        if (await settled(tx, link)) return 'settled';
        return decided.settlesByItself ? 'waiting' : 'waitingForConsent';
      }
      await forget(tx, link, 'address');
      return 'settled';
    });
  }

  /** Confirmed addresses past their time for objections, of all tenants. */
  unopposed(): Promise<ChangedAddress[]> {
    return this.#database.login((tx) => tx.all<ChangedAddress>(UNOPPOSED_ADDRESSES));
  }

  /** The new address counts from now on; false: something has changed meanwhile. */
  settle(changed: ChangedAddress): Promise<boolean> {
    return this.#trail.change(changed.tenantId, async (tx, note) => {
      if (!(await settled(tx, changed))) return false;
      await note(addressUnopposed(changed));
      return true;
    });
  }

  /** A pending new address of the user does not become effective by itself, however long no one objects. */
  async awaitConsent({ tenantId, userId }: Pick<ChangedAddress, 'tenantId' | 'userId'>): Promise<void> {
    await this.#database.shared('auth', tenantId, (tx) => tx.query(awaitConsent(tenantId, userId)));
  }
}

/** Links that went to the earlier address end with it. */
async function settled(tx: Tx, changed: ChangedAddress): Promise<boolean> {
  if (!(await tx.first(settleAddress(changed)))) return false;
  await forget(tx, changed, 'all');
  return true;
}

async function forget(tx: Tx, { tenantId, userId }: ChangedAddress, kinds: 'address' | 'all'): Promise<void> {
  for (const statement of forgetLinks(tenantId, userId, kinds)) await tx.query(statement);
}
