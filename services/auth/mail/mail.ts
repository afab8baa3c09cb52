/**
 * Mails to users of all tenants. Everything about them stands in this folder and knows of the rest of the service what
 * is passed to it, so that a service of notifications can take it over.
 */
import type { ServiceBroker } from 'moleculer';
import type { AuthActions } from '../../../contracts/auth.ts';
import type { UserIdentity } from '../../../contracts/data.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { mailAddress, nameInMail } from '../../../lib/values/mail-address.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { askedRow } from '../../../mixins/metrics/asked-numbers.ts';
import type { Metrics } from '../../../mixins/metrics/metrics.ts';
import type { Clients } from '../clients.ts';
import type { Credential } from '../store/credentials.ts';
import type { AuthStore } from '../store/store.ts';
import type { Vault } from '../vault.ts';
import { messageFor, personName } from './messages.ts';
import { type MailState, mailStates, type QueueState, queueState } from './outbox.sql.ts';
import { Outbox } from './outbox.ts';
import { type ResetRequest, Resets } from './resets.ts';
import { MailSender } from './sender.ts';
import type { Transport } from './transport.ts';

export interface MailOptions {
  readonly database: Database;
  /** null: no mails are sent, and none are put into the outbox. */
  readonly transport: Transport | null;
  user(of: { tenantId: string; userId: string }): Promise<UserIdentity | null>;
  log: ServiceBroker['logger'];
}

interface MailParts {
  readonly store: AuthStore;
  readonly clients: Clients;
  readonly vault: Vault;
  baseUrl(): string;
  /** True when the user may sign in with a password, and so may be sent a link for choosing one. */
  mayHavePassword(user: Pick<Credential, 'tenantId' | 'userId' | 'username'>): Promise<boolean>;
}

type AskedApprovers = AuthActions['auth.mails.askApprovers']['params'];

const METRICS = { waiting: 'erp_mails_waiting', oldest: 'erp_mails_oldest_seconds', ended: 'erp_mails_total' };

export class Mail {
  readonly outbox: Outbox;
  readonly #database: Database;
  readonly #sender: MailSender | null;
  readonly #resets: Resets;
  readonly #parts: MailParts;
  readonly #user: MailOptions['user'];

  constructor({ database, transport, user, log }: MailOptions, parts: MailParts) {
    this.#database = database;
    this.#parts = parts;
    this.#user = user;
    this.outbox = new Outbox(database, { enabled: transport !== null, added: () => this.#sender?.wake() });
    const messageParts = { ...parts, user };
    this.#resets = new Resets({ ...parts, database, outbox: this.outbox });
    this.#sender =
      transport &&
      new MailSender({
        outbox: this.outbox,
        transport,
        before: () => this.#resets.work(),
        message: (mail) => messageFor(messageParts, mail),
        log,
      });
  }

  /** Stores a request for a new password; false when too many wait. */
  async requestReset(asked: ResetRequest): Promise<boolean> {
    const kept = await this.#resets.add(asked);
    this.#sender?.wake();
    return kept;
  }

  /** Puts a mail for each of the users into the outbox; who has had too many gets none. */
  async askApprovers({ tenantId, approvalId, userIds, request }: AskedApprovers): Promise<void> {
    if (!this.outbox.enabled) return;
    const { store, clients } = this.#parts;
    const { clientId, ...shown } = request;
    const client = await clients.find(clientId, tenantId);
    const details = { approvalId, request: { ...shown, clientName: client?.name ?? '' } };
    for (const userId of userIds) {
      const credential = await store.credentials.find(tenantId, userId);
      if (!credential?.active) continue;
      const mail = { tenantId, userId, kind: 'approvalRequested', address: credential.email, details } as const;
      await this.#database.shared('auth', tenantId, (tx) => this.outbox.add(tx, mail));
    }
  }

  /** Puts one mail about notifications into the outbox, and says what keeps it from going. */
  async notify({ tenantId, userId, mailId, ...told }: AuthActions['auth.mails.notify']['params']) {
    const credential = await this.#parts.store.credentials.find(tenantId, userId);
    if (!credential?.active) return 'inactive' as const;
    const items = told.items.map(({ title, body, severity, from }) => ({
      title: nameInMail(title, LIMITS.notification_title_max_chars),
      body: nameInMail(body, LIMITS.notification_body_max_chars),
      severity,
      from: personName(from ?? undefined),
    }));
    const details = { notificationsId: mailId, notifications: { ...told, items } };
    const mail = { tenantId, userId, kind: 'notification', address: credential.email, details } as const;
    return this.#database.shared('auth', tenantId, (tx) => this.outbox.add(tx, mail));
  }

  /** Name and address for the mails about events of a user; null: nobody could answer them, or no mails leave. */
  async organizer(of: { tenantId: string; userId: string }) {
    if (!this.outbox.enabled) return null;
    const credential = await this.#parts.store.credentials.find(of.tenantId, of.userId);
    const address = credential?.active ? mailAddress(credential.email) : null;
    if (address === null) return null;
    const user = await this.#user(of);
    return { address, name: personName(user?.displayName) };
  }

  /** What became of mails about notifications; one that is missing ended some days ago. */
  async states({ tenantId, mailIds }: AuthActions['auth.mails.states']['params']) {
    const rows = await this.#database.shared('auth', tenantId, (tx) =>
      tx.all<{ id: string; state: MailState }>(mailStates(tenantId, mailIds)),
    );
    return Object.fromEntries(rows.map(({ id, state }) => [id, state]));
  }

  start(): void {
    this.#sender?.start();
  }

  async stop(): Promise<void> {
    await this.#sender?.stop();
  }

  register(metrics: Metrics): void {
    const sender = this.#sender;
    if (!sender) return;
    const state = askedRow<QueueState>(this.#database, queueState, { waiting: 0, oldestSeconds: 0 });
    metrics.gauge(METRICS.waiting, 'Mails that are on their way, of all processes', () => state().waiting);
    metrics.gauge(
      METRICS.oldest,
      'Age of the oldest mail that is on its way, of all processes',
      () => state().oldestSeconds,
    );
    metrics.counters(METRICS.ended, 'Mails of this process by what has become of them', ['outcome', 'kind'], () =>
      sender.counts(),
    );
  }

  unregister(metrics: Metrics): void {
    metrics.unregister(Object.values(METRICS));
  }
}
