/** Mail servers and folders of mails, and what arrives there. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type ParsedMail, simpleParser } from 'mailparser';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

interface Wanted {
  to?: string;
  /** Part of the file's name, or of the subject. */
  subject?: RegExp;
}

const PATIENCE_MS = 15_000;

export const recipient = (mail: ParsedMail): string => {
  const [to] = [mail.to ?? []].flat();
  return to?.value[0]?.address ?? '';
};

/** The address of the button. */
export const linkIn = (mail: ParsedMail): string => {
  const [link] = /https?:\/\/\S+\/(?:password|account\/address)\/[\w-]{43}/.exec(mail.text ?? '') ?? [];
  assert.ok(link, `a link in ${mail.text}`);
  return link;
};

/** Mails by the order in which they arrived; each is answered once. */
export class Mailbox {
  readonly #read: () => Promise<readonly ParsedMail[]>;
  readonly #seen = new Set<string>();

  constructor(read: () => Promise<readonly ParsedMail[]>) {
    this.#read = read;
  }

  async all({ to, subject }: Wanted = {}): Promise<ParsedMail[]> {
    const mails = await this.#read();
    return mails.filter(
      (mail) => (to === undefined || recipient(mail) === to) && (!subject || subject.test(mail.subject ?? '')),
    );
  }

  /** The next mail that was not answered yet. */
  async next(wanted: Wanted = {}): Promise<ParsedMail> {
    const end = performance.now() + PATIENCE_MS;
    for (;;) {
      const found = (await this.all(wanted)).find((mail) => !this.#seen.has(mail.messageId ?? ''));
      if (found) {
        this.#seen.add(found.messageId ?? '');
        return found;
      }
      if (performance.now() > end)
        assert.fail(
          `no mail ${JSON.stringify(wanted)}: ${(await this.#read()).map((m) => `${recipient(m)} ${m.subject}`)}`,
        );
      await pause(25);
    }
  }
}

/** Mails that a process without SMTP_URL writes below its DATA_DIR. */
export const folderOfMails = (dataDir: string): Mailbox => {
  const parsed = new Map<string, ParsedMail>();
  const folder = join(dataDir, 'mail');
  return new Mailbox(async () => {
    const files = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith('.eml')).sort();
    for (const file of files)
      if (!parsed.has(file)) parsed.set(file, await simpleParser(await readFile(join(folder, file))));
    return [...parsed.values()];
  });
};

export interface MailServer {
  readonly port: number;
  readonly mails: Mailbox;
  /** Texts as they arrived. */
  readonly raw: string[];
  close(): Promise<void>;
}

/** A real server that keeps what it is sent; `options` are those of smtp-server. */
export async function mailServer(options: SMTPServerOptions = {}): Promise<MailServer> {
  const mails: ParsedMail[] = [];
  const raw: string[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, _session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const text = Buffer.concat(chunks);
        raw.push(text.toString());
        simpleParser(text).then((mail) => {
          mails.push(mail);
          done();
        }, done);
      });
    },
    ...options,
  });
  server.on('error', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.server.address() as AddressInfo;
  return {
    port,
    mails: new Mailbox(() => Promise.resolve(mails)),
    raw,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** A server of lines that answers as `answer` says: for what no real one does on purpose. */
export async function scriptedServer(
  answer: (line: string, hangUp: () => void) => string | null,
  greeting: string | null = '220 test',
): Promise<{ port: number; connections: () => number; close(): Promise<void> }> {
  let connections = 0;
  const open = new Set<import('node:net').Socket>();
  const server: Server = createServer((socket) => {
    connections++;
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => {});
    if (greeting !== null) socket.write(`${greeting}\r\n`);
    let rest = '';
    socket.on('data', (data) => {
      const lines = (rest + data).split('\r\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const reply = answer(line, () => socket.destroy());
        if (reply !== null && !socket.destroyed) socket.write(`${reply}\r\n`);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    close: () => {
      for (const socket of open) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
