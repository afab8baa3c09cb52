/**
 * Sends what is in the outbox, in every process of the service: a few mails at a time, never on the path of a request.
 * A temporarily refused mail is retried with back-off; while no server answers, nothing is tried one by
 * one. Source: docs/reference/mail.md.
 */
import type { ServiceBroker } from 'moleculer';
import { warnOf } from '../../../mixins/log-failure.ts';
import type { MailKind } from './kinds.ts';
import type { Outbox, TakenMail } from './outbox.ts';
import type { Delivery, Message, Transport } from './transport.ts';

/** Longer than an attempt may take: afterwards the mail is another process's. */
const LEASE_SECONDS = 180;
const POLL_MS = 2_000;
const GIVE_UP_EVERY_MS = 30_000;
const AT_A_TIME = 4;
const AGAIN_FIRST_SECONDS = 30;
const AGAIN_MAX_SECONDS = 3_600;
const AWAY_FIRST_MS = 2_000;
const AWAY_MAX_MS = 60_000;
/** A process that ends gives what it is sending so long. */
const LEAVE_MS = 3_000;

/** Seconds until the next attempt after so many, with up to a tenth more, so that not all come back at once. */
const secondsUntilAgain = (attempts: number, random = Math.random()): number =>
  Math.min(AGAIN_MAX_SECONDS, AGAIN_FIRST_SECONDS * 2 ** Math.min(attempts - 1, 10)) * (1 + random / 10);

interface SenderParts {
  readonly outbox: Outbox;
  readonly transport: Transport;
  /** Fills the outbox; runs before each look. */
  before(): Promise<void>;
  /** null: the mail is no longer needed. */
  message(mail: TakenMail): Promise<Message | null>;
  log(): ServiceBroker['logger'];
}

type MailOutcome = 'sent' | 'refused' | 'gaveUp' | 'needless';

export class MailSender {
  readonly #parts: SenderParts;
  readonly #counts = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | null = null;
  #again = false;
  #stopped = false;
  #awaySince: number | null = null;
  #awayMs = 0;
  #gaveUpAt = Number.NEGATIVE_INFINITY;

  constructor(parts: SenderParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#after(POLL_MS * Math.random());
  }

  /** There may be something to send. */
  wake(): void {
    if (this.#stopped || this.#awaySince !== null) return;
    if (this.#round) this.#again = true;
    // The transaction that adds a mail ends a moment later.
    else this.#after(50);
  }

  /** Mails by outcome and kind since this process began. */
  *counts(): Generator<readonly [{ outcome: string; kind: string }, number]> {
    for (const [name, count] of this.#counts) {
      const [outcome = '', kind = ''] = name.split(' ');
      yield [{ outcome, kind }, count];
    }
  }

  /** Nothing more is begun; resolves when what is being sent is over, or after a moment. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([this.#round, new Promise((resolve) => (timer = setTimeout(resolve, LEAVE_MS)))]);
    clearTimeout(timer);
  }

  #after(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#round = this.#rounds().then(
        (pause) => this.#ended(pause),
        (error: unknown) => {
          warnOf(this.#parts.log(), error, 'Mails could not be sent; it is tried again.');
          this.#ended(POLL_MS);
        },
      );
    }, milliseconds).unref();
  }

  #ended(pauseMs: number): void {
    this.#round = null;
    this.#after(this.#again ? 50 : pauseMs);
    this.#again = false;
  }

  /** Sends until nothing is due. Milliseconds until the next look. */
  async #rounds(): Promise<number> {
    const { outbox } = this.#parts;
    await this.#giveUp();
    // A failure here delays no other mail.
    await this.#parts
      .before()
      .catch((error: unknown) => warnOf(this.#parts.log(), error, 'A request for a new password is tried again.'));
    for (;;) {
      // The first mail after an outage goes alone.
      const taken = this.#stopped ? [] : await outbox.take(this.#awaySince === null ? AT_A_TIME : 1, LEASE_SECONDS);
      if (taken.length === 0) return POLL_MS;
      const outcomes = await Promise.all(taken.map((mail) => this.#send(mail)));
      if (outcomes.includes('away')) return this.#away();
      this.#back();
    }
  }

  async #send(mail: TakenMail): Promise<Delivery['outcome']> {
    const { outbox, transport, message } = this.#parts;
    const fields = { mailId: mail.id, kind: mail.kind, tenantId: mail.tenantId, userId: mail.userId };
    let delivery: Delivery;
    try {
      const made = await message(mail);
      if (made === null) {
        await outbox.end(mail, 'needless');
        this.#count('needless', mail.kind);
        return 'sent';
      }
      delivery = await transport.send(made);
    } catch (error) {
      warnOf(this.#parts.log(), error, 'A mail could not be made; it is tried again.', fields);
      await outbox.postpone(mail, secondsUntilAgain(mail.attempts), { untried: false });
      return 'busy';
    }
    switch (delivery.outcome) {
      case 'sent':
        await outbox.end(mail, 'sent');
        this.#count('sent', mail.kind);
        if (delivery.file)
          this.#parts
            .log()
            .info({ ...fields, file: delivery.file }, 'A mail was written to a file, since SMTP_URL is not set.');
        break;
      case 'refused':
        await outbox.end(mail, 'refused');
        this.#count('refused', mail.kind);
        this.#parts.log().warn({ ...fields, reason: delivery.reason }, 'A mail was permanently rejected.');
        break;
      case 'busy':
        await outbox.postpone(mail, secondsUntilAgain(mail.attempts), { untried: false });
        this.#parts
          .log()
          .info(
            { ...fields, reason: delivery.reason, attempts: mail.attempts },
            'A mail was not taken; it is tried again.',
          );
        break;
      case 'away':
        // Logged once, and not for each of them.
        if (this.#awaySince === null)
          this.#parts.log().warn({ reason: delivery.reason }, 'Mails cannot be sent; retrying.');
        this.#awaySince ??= performance.now();
        await outbox.postpone(mail, AWAY_FIRST_MS / 1_000, { untried: true });
    }
    return delivery.outcome;
  }

  #away(): number {
    this.#awaySince ??= performance.now();
    this.#awayMs = Math.min(AWAY_MAX_MS, this.#awayMs === 0 ? AWAY_FIRST_MS : 2 * this.#awayMs);
    return this.#awayMs;
  }

  #back(): void {
    if (this.#awaySince !== null) {
      const seconds = Math.round((performance.now() - this.#awaySince) / 1_000);
      this.#parts.log().warn(`Mails can be sent again after ${seconds} s.`);
    }
    this.#awaySince = null;
    this.#awayMs = 0;
  }

  async #giveUp(): Promise<void> {
    if (performance.now() - this.#gaveUpAt < GIVE_UP_EVERY_MS) return;
    this.#gaveUpAt = performance.now();
    for (const { kind, count } of await this.#parts.outbox.giveUp()) {
      this.#count('gaveUp', kind, count);
      this.#parts.log().warn({ kind, count }, 'Gave up on mails that could not be sent in time.');
    }
  }

  #count(outcome: MailOutcome, kind: MailKind | string, by = 1): void {
    const name = `${outcome} ${kind}`;
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + by);
  }
}
