import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type MailConfig, readMail, type SmtpConfig } from '../../../config/mail.ts';

describe('the configuration of mails', () => {
  const problemsOf = (env: Record<string, string>, production = true): string[] => {
    const problems: string[] = [];
    readMail(env, { production, dataDir: '/data' }, problems);
    return problems;
  };
  const read = (env: Record<string, string>, production = true): MailConfig => {
    const problems: string[] = [];
    const config = readMail(env, { production, dataDir: '/data' }, problems);
    assert.deepEqual(problems, []);
    return config;
  };
  const MAIL_FROM = 'ERP <no-reply@example.com>';
  const smtp = (SMTP_URL: string): SmtpConfig => {
    const config = read({ SMTP_URL, MAIL_FROM });
    assert.ok(config.by === 'smtp');
    return config.smtp;
  };

  it('without a server writes files outside production and sends nothing in production', () => {
    assert.deepEqual(read({}, false), {
      by: 'folder',
      folder: '/data/mail',
      from: { name: 'ERP platform', address: 'no-reply@localhost' },
    });
    assert.deepEqual(read({}), { by: 'nothing' });
  });

  it('requires TLS unless the address says otherwise', () => {
    const base = { implicitTls: false, startTls: 'required', caFile: null, login: null };
    assert.deepEqual(smtp('smtp://mail.example.com'), { ...base, host: 'mail.example.com', port: 587 });
    assert.deepEqual(smtp('smtp://[::1]:25?starttls=off'), { ...base, host: '::1', port: 25, startTls: 'off' });
    assert.deepEqual(smtp('smtps://mail.example.com'), {
      ...base,
      host: 'mail.example.com',
      port: 465,
      implicitTls: true,
    });
  });

  it('reads the user from the address, and the password from there or from a file', async () => {
    assert.deepEqual(smtp('smtp://erp%40example.com:p%40ss@mail.example.com').login, {
      user: 'erp@example.com',
      password: 'p@ss',
    });
    const folder = await mkdtemp(join(tmpdir(), 'erp-test-mail-'));
    try {
      const file = join(folder, 'password');
      await writeFile(file, 'secret\n');
      const config = read({ SMTP_URL: 'smtps://erp@mail.example.com', SMTP_PASSWORD_FILE: file, MAIL_FROM });
      assert.ok(config.by === 'smtp');
      assert.deepEqual(config.smtp.login, { user: 'erp', password: { file } });
      const both = problemsOf({ SMTP_URL: 'smtps://erp:x@mail.example.com', SMTP_PASSWORD_FILE: file, MAIL_FROM });
      assert.match(both.join(), /give one of them/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('reports all problems, and never a password', () => {
    const cases: [Record<string, string>, RegExp][] = [
      [{ SMTP_URL: 'http://mail.example.com', MAIL_FROM }, /begins with smtp:/],
      [{ SMTP_URL: 'smtp://mail.example.com' }, /needs MAIL_FROM/],
      [{ SMTP_URL: 'smtp://mail.example.com?starttls=maybe', MAIL_FROM }, /starttls/],
      [{ SMTP_URL: 'smtp://mail.example.com?tls=off', MAIL_FROM }, /starttls/],
      [{ SMTP_URL: 'smtps://mail.example.com?starttls=off', MAIL_FROM }, /starttls/],
      [{ SMTP_URL: 'smtp://u:hidden@mail.example.com?starttls=off', MAIL_FROM }, /others can read/],
      [{ SMTP_URL: 'smtp://u:hidden@mail.example.com?starttls=optional', MAIL_FROM }, /others can read/],
      [{ SMTP_URL: 'smtp://u@mail.example.com', MAIL_FROM }, /without a password/],
      [{ SMTP_URL: 'smtp://u:%zz@mail.example.com', MAIL_FROM }, /percent-encoded/],
      [{ SMTP_PASSWORD_FILE: '/etc/hostname' }, /needs SMTP_URL/],
      [{ SMTP_URL: 'smtp://mail.example.com', MAIL_FROM: 'A\r\nBcc: x@y.zz <a@b.cc>' }, /MAIL_FROM must be/],
      [{ SMTP_URL: 'smtp://mail.example.com', MAIL_FROM: 'nobody' }, /MAIL_FROM must be/],
      [{ SMTP_URL: 'smtp://mail.example.com', MAIL_FROM, SMTP_CA_FILE: '/nowhere' }, /SMTP_CA_FILE names a file/],
    ];
    for (const [env, expected] of cases) {
      const text = problemsOf(env).join('\n');
      assert.match(text, expected, JSON.stringify(env));
      assert.ok(!text.includes('hidden'));
    }
  });
});
