/**
 * Sends what is in the outbox, in every process of the service: a few mails at a time, never on the path of a request.
 * A temporarily refused mail is retried with back-off; while no server answers, nothing is tried one by
 * one. Source: docs/reference/mail.md.
 */
import type { ServiceBroker } from 'moleculer';
import { WorkLoop } from '../../../mixins/jobs/work-loop.ts';
import { warnOf } from '../../../mixins/log-failure.ts';
import { Outage } from '../../../mixins/outage.ts';
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
/** The server is asked again later than that in any case: the mail waits for no other process's next look. */
const AWAY_SECONDS = 2;
/** The transaction that adds a mail ends a moment after the sender hears of it. */
const COMMIT_MS = 50;
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
  log: ServiceBroker['logger'];
}

type MailOutcome = 'sent' | 'refused' | 'gaveUp' | 'needless';

export class MailSender {
  readonly #parts: SenderParts;
  readonly #counts = new Map<string, number>();
  readonly #loop: WorkLoop<readonly TakenMail[]>;
  readonly #away: Outage;
  #gaveUpAt = Number.NEGATIVE_INFINITY;

  constructor(parts: SenderParts) {
    this.#parts = parts;
    this.#away = new Outage({
      began: (reason) => parts.log.warn({ reason }, 'Mails cannot be sent; retrying.'),
      ended: (seconds) => parts.log.warn(`Mails can be sent again after ${Math.round(seconds)} s.`),
    });
    this.#loop = new WorkLoop({
      label: 'auth.mails',
      lookMs: POLL_MS,
      concurrency: 1,
      due: () => this.#batch(),
      keyOf: () => 'batch',
      run: (mails) => this.#sendAll(mails),
      failed: (error) => warnOf(parts.log, error, 'Mails could not be sent; it is tried again.'),
    });
  }

  /** Begins to send. */
  start(): void {
    this.#loop.wake();
  }

  /** There may be something to send. */
  wake(): void {
    setTimeout(() => this.#loop.wake(), COMMIT_MS).unref();
  }

  /** Mails by outcome and kind since this process began. */
  *counts(): Generator<readonly [{ outcome: string; kind: string }, number]> {
    for (const [name, count] of this.#counts) {
      const [outcome = '', kind = ''] = name.split(' ');
      yield [{ outcome, kind }, count];
    }
  }

  /** Nothing more is begun; resolves when what is being sent is over, or after a moment. */
  stop(): Promise<void> {
    return this.#loop.stop(LEAVE_MS);
  }

  /** The next mails, which are sent together. */
  async #batch(): Promise<(readonly TakenMail[])[]> {
    const { outbox, before, log } = this.#parts;
    await this.#giveUp();
    // A failure here delays no other mail.
    await before().catch((error: unknown) => warnOf(log, error, 'A request for a new password is tried again.'));
    // The first mail after an outage goes alone.
    const mails = await outbox.take(this.#away.lasts ? 1 : AT_A_TIME, LEASE_SECONDS);
    return mails.length === 0 ? [] : [mails];
  }

  async #sendAll(mails: readonly TakenMail[]): Promise<'done' | 'unavailable'> {
    const outcomes = await Promise.all(mails.map((mail) => this.#send(mail)));
    if (outcomes.includes('away')) return 'unavailable';
    this.#away.end();
    return 'done';
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
      warnOf(this.#parts.log, error, 'A mail could not be made; it is tried again.', fields);
      await outbox.postpone(mail, secondsUntilAgain(mail.attempts), { untried: false });
      return 'busy';
    }
    switch (delivery.outcome) {
      case 'sent':
        await outbox.end(mail, 'sent');
        this.#count('sent', mail.kind);
        if (delivery.file)
          this.#parts.log.info(
            { ...fields, file: delivery.file },
            'A mail was written to a file, since SMTP_URL is not set.',
          );
        break;
      case 'refused':
        await outbox.end(mail, 'refused');
        this.#count('refused', mail.kind);
        this.#parts.log.warn({ ...fields, reason: delivery.reason }, 'A mail was permanently rejected.');
        break;
      case 'busy':
        await outbox.postpone(mail, secondsUntilAgain(mail.attempts), { untried: false });
        this.#parts.log.info(
          { ...fields, reason: delivery.reason, attempts: mail.attempts },
          'A mail was not taken; it is tried again.',
        );
        break;
      case 'away':
        this.#away.begin(delivery.reason);
        await outbox.postpone(mail, AWAY_SECONDS, { untried: true });
    }
    return delivery.outcome;
  }

  async #giveUp(): Promise<void> {
    if (performance.now() - this.#gaveUpAt < GIVE_UP_EVERY_MS) return;
    this.#gaveUpAt = performance.now();
    for (const { kind, count } of await this.#parts.outbox.giveUp()) {
      this.#count('gaveUp', kind, count);
      this.#parts.log.warn({ kind, count }, 'Gave up on mails that could not be sent in time.');
    }
  }

  #count(outcome: MailOutcome, kind: MailKind | string, by = 1): void {
    const name = `${outcome} ${kind}`;
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + by);
  }
}
