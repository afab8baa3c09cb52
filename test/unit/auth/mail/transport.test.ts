/** Mails over SMTP: against a real server with TLS and sign-in, and against servers that do what none should. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import 'reflect-metadata';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SMTPServerOptions } from 'smtp-server';
import type { SmtpConfig } from '../../../../config/mail.ts';
import { FolderTransport, type Message, SmtpTransport } from '../../../../services/auth/mail/transport.ts';
import { selfSigned } from '../../../support/certificates.ts';
import {
  folderOfMails,
  linkIn,
  type MailServer,
  mailServer,
  recipient,
  scriptedServer,
} from '../../../support/mail.ts';

const FROM = { name: 'ERP', address: 'no-reply@erp.example' };
const LINK = `https://erp.example/password/${'x'.repeat(43)}`;
/** For servers that do not answer. */
const IMPATIENT = { connectMs: 300, silentMs: 300, totalMs: 600 };

const message = (more: Partial<Message> = {}): Message => ({
  id: '01990000-0000-7000-8000-000000000001',
  kind: 'invitation',
  to: { name: 'Joan Hale', address: 'joan@mail.example' },
  subject: 'Your account',
  text: `Open ${LINK}\n`,
  html: `<p><a href="${LINK}">Open</a></p>`,
  language: 'en',
  unsubscribe: null,
  replyTo: null,
  calendar: null,
  ...more,
});

const hangingUp = (hangUp: () => void): null => {
  hangUp();
  return null;
};

describe('mails over SMTP', () => {
  let folder: string;
  let certificate: { key: string; cert: string };
  const closers: (() => Promise<unknown>)[] = [];
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'erp-test-smtp-'));
    certificate = await selfSigned('localhost');
    await writeFile(join(folder, 'ca.pem'), certificate.cert);
    await writeFile(join(folder, 'password'), 'right\n');
  });
  afterEach(async () => {
    for (const close of closers.splice(0)) await close();
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const smtp = (port: number, more: Partial<SmtpConfig> = {}): SmtpConfig => ({
    host: 'localhost',
    port,
    implicitTls: false,
    startTls: 'off',
    caFile: null,
    login: null,
    ...more,
  });
  const server = async (options: SMTPServerOptions = {}): Promise<MailServer> => {
    const started = await mailServer(options);
    closers.push(started.close);
    return started;
  };
  const scripted = async (...script: Parameters<typeof scriptedServer>) => {
    const started = await scriptedServer(...script);
    closers.push(started.close);
    return started;
  };
  const send = (config: SmtpConfig, more: Partial<Message> = {}) => new SmtpTransport(config, FROM).send(message(more));
  const outcome = async (config: SmtpConfig): Promise<string> =>
    (await new SmtpTransport(config, FROM, IMPATIENT).send(message({}))).outcome;

  it('arrive complete, with headers that suppress automatic replies', async () => {
    const { port, mails } = await server();
    assert.deepEqual(await send(smtp(port)), { outcome: 'sent' });
    const mail = await mails.next();
    assert.equal(recipient(mail), 'joan@mail.example');
    assert.equal(mail.from?.value[0]?.address, FROM.address);
    assert.equal(mail.messageId, '<01990000-0000-7000-8000-000000000001@erp.example>');
    assert.equal(mail.headers.get('auto-submitted'), 'auto-generated');
    assert.equal(linkIn(mail), LINK);
    assert.ok(String(mail.html).includes(LINK));
  });

  it('are safe from header and recipient injection by names and subjects', async () => {
    const { port, mails, raw } = await server();
    const evil = 'Eve\r\nBcc: thief@evil.example\r\nX-Evil: yes';
    await send(smtp(port), { to: { name: evil, address: 'joan@mail.example' }, subject: evil });
    const mail = await mails.next();
    assert.equal(mail.headers.get('x-evil'), undefined);
    assert.equal(mail.bcc, undefined);
    assert.equal(recipient(mail), 'joan@mail.example');
    assert.doesNotMatch(raw[0]!, /^(?:bcc|x-evil):/im);
  });

  it('accept names and subjects of any script and length', async () => {
    const { port, mails, raw } = await server();
    const name = 'Žofie 王小明 "x" <y@z>, Ünal'.repeat(8);
    await send(smtp(port), { to: { name, address: 'joan@xn--bcher-kva.example' }, subject: name });
    const mail = await mails.next();
    assert.equal(mail.subject, name);
    assert.deepEqual(
      [mail.to ?? []].flat().flatMap(({ value }) => value.map(({ address }) => address)),
      ['joan@bücher.example'],
    );
    assert.match(raw[0]!, /joan@xn--bcher-kva\.example/);
  });

  it('use verified TLS, and sign in with the password from a file', async () => {
    const secured: SMTPServerOptions = {
      ...certificate,
      disabledCommands: [],
      authOptional: false,
      onAuth: ({ username, password }, session, done) =>
        username === 'erp' && password === 'right' && session.secure
          ? done(null, { user: 'erp' })
          : done(new Error('wrong')),
    };
    const login = { user: 'erp', password: { file: join(folder, 'password') } };
    const caFile = join(folder, 'ca.pem');
    const starting = await server(secured);
    assert.equal(await outcome(smtp(starting.port, { startTls: 'required', caFile, login })), 'sent');
    assert.equal(await outcome(smtp(starting.port, { startTls: 'required', login })), 'away', 'an unknown authority');
    const wrong = { user: 'erp', password: 'wrong' };
    const refused = await send(smtp(starting.port, { startTls: 'required', caFile, login: wrong }));
    assert.equal(refused.outcome, 'away');
    assert.doesNotMatch(JSON.stringify(refused), /"wrong"|erp:/);
    const implicit = await server({ ...secured, secure: true });
    assert.equal(await outcome(smtp(implicit.port, { implicitTls: true, caFile, login })), 'sent');
  });

  it('are not sent to a server that does not offer required STARTTLS', async () => {
    const { port, raw } = await server();
    assert.equal(await outcome(smtp(port, { startTls: 'required' })), 'away');
    assert.equal(raw.length, 0);
    assert.equal(await outcome(smtp(port, { startTls: 'optional' })), 'sent');
  });

  it('are retried when a server is down, silent, or floods the client', async () => {
    const gone = await scripted(() => null);
    await gone.close();
    closers.pop();
    assert.equal(await outcome(smtp(gone.port)), 'away');
    const silent = await scripted(() => null, null);
    assert.equal(await outcome(smtp(silent.port)), 'away');
    const stuck = await scripted((line) => (/^(EHLO|HELO)/.test(line) ? '250 ok' : null));
    assert.equal(await outcome(smtp(stuck.port)), 'away');
    const began = performance.now();
    const endless = await scripted((line) => {
      if (/^(EHLO|HELO)/.test(line)) return '250 ok';
      return '250-more';
    });
    assert.equal(await outcome(smtp(endless.port)), 'away');
    assert.ok(performance.now() - began < 20_000);
  });

  /** A conversation up to the mail itself; `answers` take the place of those that a server would give. */
  const conversation = (answers: Record<string, string>, atEnd?: (hangUp: () => void) => string | null) => {
    let inData = false;
    return (line: string, hangUp: () => void): string | null => {
      if (inData) {
        if (line !== '.') return null;
        inData = false;
        return atEnd ? atEnd(hangUp) : (answers['.'] ?? '250 taken');
      }
      const [command = ''] = line.split(/[ :]/);
      if (command === 'DATA' && !answers['DATA']) inData = true;
      return answers[command] ?? (command === 'DATA' ? '354 go on' : command === 'QUIT' ? '221 bye' : '250 ok');
    };
  };

  it('are retried depending on the server’s code and command', async () => {
    const cases: [Record<string, string>, string][] = [
      [{ RCPT: '450 4.2.0 greylisted' }, 'busy'],
      [{ RCPT: '550 5.1.1 no such user' }, 'refused'],
      [{ '.': '451 4.3.0 later' }, 'busy'],
      [{ '.': `554 5.7.1 we do not like ${LINK}` }, 'refused'],
      [{ DATA: '451 4.3.0 later' }, 'busy'],
      // About the sender: the installation is not set up, and no other mail would pass.
      [{ MAIL: '550 5.7.1 who are you' }, 'away'],
      [{ MAIL: '421 4.3.2 shutting down' }, 'away'],
    ];
    for (const [answers, expected] of cases) {
      const { port } = await scripted(conversation(answers));
      const delivery = await send(smtp(port));
      assert.equal(delivery.outcome, expected, JSON.stringify([answers, delivery]));
      assert.ok(!JSON.stringify(delivery).includes(LINK), 'what a server repeats of a mail goes nowhere');
    }
  });

  it('are retried when a server disconnects in between', async () => {
    const dropping = await scripted(conversation({}, hangingUp));
    assert.equal(await outcome(smtp(dropping.port)), 'busy');
    const early = await scripted((_line, hangUp) => hangingUp(hangUp));
    assert.equal(await outcome(smtp(early.port)), 'busy');
  });

  it('leave no connection behind', async () => {
    const silent = await scripted(() => null, null);
    for (let i = 0; i < 3; i++) await outcome(smtp(silent.port));
    assert.equal(silent.connections(), 3);
    await silent.close();
    closers.pop();
  });

  it('are written to owner-only files when there is no server', async () => {
    const transport = new FolderTransport(join(folder, 'mail'), FROM);
    const sent = await transport.send(message());
    assert.ok(sent.outcome === 'sent' && sent.file);
    assert.equal(linkIn(await folderOfMails(folder).next({ to: 'joan@mail.example' })), LINK);
    const { mode } = await stat(sent.file);
    assert.equal(mode & 0o077, 0);
    assert.deepEqual(
      (await readdir(join(folder, 'mail'))).filter((name) => !name.endsWith('.eml')),
      [],
    );
  });
});
