/**
 * Mails on their way: put into the outbox in the transaction of what they are about, taken out by whichever process is
 * about to send. The mail of a process that dies while it sends is due again when its lease is over.
 */
import { mailAddress } from '../../../lib/values/mail-address.ts';
import type { Database, Tx } from '../../../mixins/database/database.ts';
import { noteNotified } from '../store/addresses.sql.ts';
import type { MailDetails, MailKind, NewMail, Queued } from './kinds.ts';
import { endMail, giveUpMails, postponeMail, queueMail, takeMails } from './outbox.sql.ts';

export interface TakenMail {
  readonly tenantId: string;
  readonly id: string;
  readonly userId: string;
  readonly kind: MailKind;
  readonly address: string;
  readonly details: MailDetails;
  readonly attempts: number;
}

export class Outbox {
  readonly #database: Database;
  /** Mails leave this installation at all. */
  readonly enabled: boolean;
  readonly #added: () => void;

  /** `added`: a mail may have been put in; it is called before the transaction ends, so it is a hint. */
  constructor(database: Database, { enabled, added }: { enabled: boolean; added: () => void }) {
    this.#database = database;
    this.enabled = enabled;
    this.#added = added;
  }

  /** In the transaction of what the mail is about, which is bound to its tenant. */
  async add(tx: Tx, mail: NewMail): Promise<Queued> {
    if (!this.enabled) return 'off';
    const address = mailAddress(mail.address);
    if (address === null) return 'noAddress';
    const { outcome } = await tx.one<{ outcome: 'queued' | 'tooManyMails' }>(queueMail({ ...mail, address }));
    if (outcome === 'queued') this.#added();
    return outcome;
  }

  take(limit: number, leaseSeconds: number): Promise<TakenMail[]> {
    return this.#database.login((tx) => tx.all<TakenMail>(takeMails(limit, leaseSeconds)));
  }

  async end(mail: TakenMail, outcome: 'sent' | 'refused' | 'needless'): Promise<void> {
    const { kind, address: earlierAddress, details } = mail;
    await this.#database.login(async (tx) => {
      // Before the end of the mail: if this fails, the mail is sent again.
      if (kind === 'addressChanged' && outcome !== 'needless')
        await tx.query(noteNotified({ ...mail, earlierAddress, address: details.newAddress ?? '' }));
      await tx.query(endMail(mail, outcome));
    });
  }

  async postpone(mail: TakenMail, seconds: number, { untried }: { untried: boolean }): Promise<void> {
    await this.#database.login((tx) => tx.query(postponeMail(mail, seconds, untried)));
  }

  /** How many of each kind were given up. */
  giveUp(): Promise<{ kind: string; count: number }[]> {
    return this.#database.login((tx) => tx.all<{ kind: string; count: number }>(giveUpMails()));
  }
}
