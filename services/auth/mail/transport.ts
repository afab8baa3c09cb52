/**
 * How a mail leaves: over SMTP, one connection each, with a time for every step and for all of them together; or as a
 * file, where no server is set. Source: docs/reference/mail.md.
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { createTransport, type Transporter } from 'nodemailer';
import type { MailConfig, Sender, SmtpConfig } from '../../../config/mail.ts';
import { membersOf } from '../../../lib/json/objects.ts';
import { platformTime } from '../../../lib/values/clock.ts';

/** A mail as it leaves. */
export interface Message {
  /** The same at each attempt. */
  readonly id: string;
  readonly kind: string;
  readonly to: { readonly name: string; readonly address: string };
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  readonly language: string;
  /** Address at which the recipient ends such mails by a POST (RFC 8058); null: these cannot be ended. */
  readonly unsubscribe: string | null;
  /** Recipient of answers, if it is not the sender. */
  readonly replyTo: { readonly name: string; readonly address: string } | null;
  /** An event for calendar programs (RFC 6047). */
  readonly calendar: { readonly method: 'REQUEST' | 'CANCEL'; readonly content: string } | null;
}

/**
 * Outcome of an attempt. `refused`: the server will never take it. `busy`: it may take it later. `away`: no mail
 * can be sent at this moment; the server does not answer, or not as it should.
 */
export type Delivery =
  | { readonly outcome: 'sent'; readonly file?: string }
  | { readonly outcome: 'refused' | 'busy' | 'away'; readonly reason: string };

export interface Transport {
  /** Never throws for what the server does. */
  send(message: Message): Promise<Delivery>;
}

interface SmtpTimes {
  readonly connectMs: number;
  /** Without a byte from the server. */
  readonly silentMs: number;
  readonly totalMs: number;
}

const SMTP_TIMES: SmtpTimes = { connectMs: 10_000, silentMs: 20_000, totalMs: 60_000 };

/** How a mail of these parts is written. */
function written(from: Sender, message: Message) {
  const [, domain = 'localhost'] = from.address.split('@');
  return {
    from,
    to: message.to,
    messageId: `<${message.id}@${domain}>`,
    date: new Date(platformTime()),
    subject: message.subject,
    text: message.text,
    html: message.html,
    ...(message.replyTo ? { replyTo: message.replyTo } : {}),
    ...(message.calendar ? { icalEvent: { ...message.calendar, filename: 'event.ics' } } : {}),
    // Absence notices do not answer it (RFC 3834).
    headers: {
      'Auto-Submitted': 'auto-generated',
      'X-Auto-Response-Suppress': 'All',
      'Content-Language': message.language,
      ...(message.unsubscribe === null
        ? {}
        : {
            'List-Unsubscribe': `<${message.unsubscribe}>`,
            'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
          }),
    },
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}

export class SmtpTransport implements Transport {
  readonly #smtp: SmtpConfig;
  readonly #from: Sender;
  readonly #times: SmtpTimes;

  constructor(smtp: SmtpConfig, from: Sender, times: SmtpTimes = SMTP_TIMES) {
    this.#smtp = smtp;
    this.#from = from;
    this.#times = times;
  }

  async send(message: Message): Promise<Delivery> {
    // Ours, so that it ends with the attempt, whatever the server does.
    const socket = new Socket();
    let transport: Transporter;
    try {
      transport = createTransport({ ...(await this.#options()), socket });
    } catch (error) {
      return { outcome: 'away', reason: `a file of the settings cannot be read: ${codeOf(error)}` };
    }
    let timer: NodeJS.Timeout | undefined;
    const tooLong = new Promise<Delivery>((resolve) => {
      timer = setTimeout(() => resolve({ outcome: 'away', reason: 'it took too long' }), this.#times.totalMs);
    });
    const sent = transport.sendMail(written(this.#from, message)).then(
      (): Delivery => ({ outcome: 'sent' }),
      (error: unknown): Delivery => failureOf(error, socket.bytesRead > 0),
    );
    try {
      return await Promise.race([sent, tooLong]);
    } finally {
      clearTimeout(timer);
      socket.destroy();
    }
  }

  async #options() {
    const { host, port, implicitTls, startTls, caFile, login } = this.#smtp;
    const ca = caFile === null ? undefined : await readFile(caFile, 'utf8');
    const password =
      login &&
      (typeof login.password === 'string' ? login.password : (await readFile(login.password.file, 'utf8')).trim());
    return {
      host,
      port,
      secure: implicitTls,
      requireTLS: !implicitTls && startTls === 'required',
      ignoreTLS: !implicitTls && startTls === 'off',
      ...(login ? { auth: { user: login.user, pass: password ?? '' } } : {}),
      tls: { minVersion: 'TLSv1.2' as const, ...(ca === undefined ? {} : { ca }) },
      connectionTimeout: this.#times.connectMs,
      greetingTimeout: this.#times.connectMs,
      dnsTimeout: this.#times.connectMs,
      socketTimeout: this.#times.silentMs,
    };
  }
}

interface SmtpError {
  readonly command: string;
  readonly responseCode: number | undefined;
  readonly response: string;
}

function smtpErrorOf(error: unknown): SmtpError {
  const { command, responseCode, response } = membersOf(error);
  return {
    command: typeof command === 'string' ? command : '',
    responseCode: typeof responseCode === 'number' ? responseCode : undefined,
    response: typeof response === 'string' ? response : '',
  };
}

const codeOf = (error: unknown): string => String(membersOf(error)['code'] ?? 'unknown');

const REASON_MAX_CHARS = 200;
/** The server has hung up. */
const LOST = /Connection closed unexpectedly|ECONNRESET|EPIPE/;

/**
 * Only what a server says about the recipient, or about the mail itself, is about this mail; all else concerns every
 * mail. An answer to the mail itself may repeat parts of it, so its text goes nowhere.
 */
function failureOf(error: unknown, greeted: boolean): Delivery {
  const { command, responseCode, response } = smtpErrorOf(error);
  const code = codeOf(error);
  const ofMail = command === 'RCPT TO' || command === 'DATA';
  const said =
    command === 'DATA'
      ? String(responseCode ?? '')
      : response.replaceAll(/[\p{Cc}]+/gu, ' ').slice(0, REASON_MAX_CHARS);
  const reason = [code, command, said].filter(Boolean).join(' ');
  // The library does not say at which step. It may be this mail at which the server breaks, so others go on.
  if (greeted && LOST.test(String(error))) return { outcome: 'busy', reason };
  if (!ofMail || responseCode === undefined)
    // An address that cannot be given to the server, such as one in letters that this one does not take.
    return { outcome: code === 'EENVELOPE' && responseCode === undefined ? 'refused' : 'away', reason };
  return { outcome: responseCode >= 500 ? 'refused' : 'busy', reason };
}

/** The newest ones stay. */
const FILES_MAX = 500;

export class FolderTransport implements Transport {
  readonly #folder: string;
  readonly #from: Sender;

  constructor(folder: string, from: Sender) {
    this.#folder = folder;
    this.#from = from;
  }

  async send(message: Message): Promise<Delivery> {
    const composer = createTransport({ streamTransport: true, buffer: true, newline: 'windows' });
    const { message: bytes } = await composer.sendMail(written(this.#from, message));
    try {
      // These files hold links that any reader can use.
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      const time = new Date(platformTime()).toISOString().replaceAll(':', '-');
      const file = join(this.#folder, `${time}-${message.kind}-${message.id}.eml`);
      await writeFile(`${file}.part`, bytes, { mode: 0o600 });
      await rename(`${file}.part`, file);
      const files = (await readdir(this.#folder)).filter((name) => name.endsWith('.eml')).sort();
      for (const name of files.slice(0, -FILES_MAX)) await rm(join(this.#folder, name), { force: true });
      return { outcome: 'sent', file };
    } catch (error) {
      return { outcome: 'away', reason: `the folder of mails cannot be written: ${codeOf(error)}` };
    }
  }
}

/** null: mails go nowhere. */
export function transportFor(config: MailConfig): Transport | null {
  if (config.by === 'smtp') return new SmtpTransport(config.smtp, config.from);
  return config.by === 'folder' ? new FolderTransport(config.folder, config.from) : null;
}
