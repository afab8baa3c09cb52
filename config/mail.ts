/** How mails leave the platform. Source: docs/reference/mail.md. */
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { mailAddress, nameInMail } from '../lib/values/mail-address.ts';

export interface Sender {
  readonly name: string;
  readonly address: string;
}

export interface SmtpConfig {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte (smtps). */
  readonly implicitTls: boolean;
  /** Of a connection that begins in plain text. */
  readonly startTls: 'required' | 'optional' | 'off';
  /** PEM; null: the authorities of Node.js. Read again at each connection, as the password is. */
  readonly caFile: string | null;
  readonly login: { readonly user: string; readonly password: string | { readonly file: string } } | null;
}

export type MailConfig =
  | { readonly by: 'smtp'; readonly smtp: SmtpConfig; readonly from: Sender }
  /** A file for each mail: for trials. */
  | { readonly by: 'folder'; readonly folder: string; readonly from: Sender }
  /** Production without SMTP_URL. */
  | { readonly by: 'nothing' };

type Environment = Readonly<Record<string, string | undefined>>;

const START_TLS = ['required', 'optional', 'off'] as const;
const NAME_MAX_CHARS = 100;
const SENDER_MAX_CHARS = 500;

/** Reads the settings of mails; what is wrong with them is added to `problems`. */
export function readMail(
  env: Environment,
  { production, dataDir }: { production: boolean; dataDir: string },
  problems: string[],
): MailConfig {
  const from = senderOf(env, problems);
  if (!env['SMTP_URL']) {
    for (const name of ['SMTP_CA_FILE', 'SMTP_PASSWORD_FILE']) if (env[name]) problems.push(`${name} needs SMTP_URL.`);
    if (production) return { by: 'nothing' };
    return {
      by: 'folder',
      folder: join(dataDir, 'mail'),
      from: from ?? { name: 'ERP platform', address: 'no-reply@localhost' },
    };
  }
  const smtp = smtpOf(env, env['SMTP_URL'], problems);
  if (!env['MAIL_FROM']) problems.push('SMTP_URL needs MAIL_FROM: the address that mails come from.');
  return smtp && from ? { by: 'smtp', smtp, from } : { by: 'nothing' };
}

function smtpOf(env: Environment, text: string, problems: string[]): SmtpConfig | null {
  const url = URL.parse(text);
  if (!url || !['smtp:', 'smtps:'].includes(url.protocol) || url.hostname === '') {
    problems.push('SMTP_URL must be an address that begins with smtp:// or smtps://.');
    return null;
  }
  const implicitTls = url.protocol === 'smtps:';
  const known = [...url.searchParams.keys()].every((name) => name === 'starttls');
  const startTls = START_TLS.find((one) => one === (url.searchParams.get('starttls') ?? 'required'));
  if (!known || !startTls || (implicitTls && url.searchParams.has('starttls')) || !/^\/?$/.test(url.pathname))
    problems.push('SMTP_URL can end in ?starttls=required, optional or off after smtp://, and in nothing else.');
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const login = loginOf(env, url, problems);
  if (login && !implicitTls && startTls !== 'required' && startTls !== undefined && !isThisMachine(host))
    problems.push('SMTP_URL would send a password that others can read: use smtps:// or ?starttls=required.');
  return {
    host,
    port: url.port === '' ? (implicitTls ? 465 : 587) : Number(url.port),
    implicitTls,
    startTls: startTls ?? 'required',
    caFile: file(env, 'SMTP_CA_FILE', problems),
    login,
  };
}

function loginOf(env: Environment, url: URL, problems: string[]): SmtpConfig['login'] {
  const passwordFile = file(env, 'SMTP_PASSWORD_FILE', problems);
  let user: string;
  let password: string;
  try {
    user = decodeURIComponent(url.username);
    password = decodeURIComponent(url.password);
  } catch {
    problems.push('SMTP_URL must have user and password percent-encoded.');
    return null;
  }
  if (user === '') {
    if (env['SMTP_PASSWORD_FILE']) problems.push('SMTP_PASSWORD_FILE needs a user in SMTP_URL.');
    return null;
  }
  if (password !== '' && env['SMTP_PASSWORD_FILE'])
    problems.push('SMTP_URL has a password, and SMTP_PASSWORD_FILE is set as well: give one of them.');
  else if (password === '' && !env['SMTP_PASSWORD_FILE'])
    problems.push('SMTP_URL has a user without a password: add it there, or set SMTP_PASSWORD_FILE.');
  return { user, password: passwordFile === null ? password : { file: passwordFile } };
}

/** `Name <address>`, or an address alone. */
function senderOf(env: Environment, problems: string[]): Sender | null {
  const text = env['MAIL_FROM'];
  if (text === undefined || text === '') return null;
  const given = text.slice(0, SENDER_MAX_CHARS).trim();
  const opens = given.endsWith('>') ? given.lastIndexOf('<') : -1;
  const name = given
    .slice(0, Math.max(0, opens))
    .trim()
    .replace(/^"(.*)"$/, '$1');
  const address = mailAddress(opens < 0 ? given : given.slice(opens + 1, -1));
  const isName = !/[<>@"\p{Cc}]/u.test(name) && text.length <= SENDER_MAX_CHARS;
  if (address !== null && isName) return { name: nameInMail(name, NAME_MAX_CHARS), address };
  problems.push('MAIL_FROM must be a mail address, or a name with one: ERP <no-reply@example.com>.');
  return null;
}

function file(env: Environment, name: string, problems: string[]): string | null {
  const path = env[name];
  if (path === undefined || path === '') return null;
  try {
    accessSync(path, constants.R_OK);
    return path;
  } catch {
    problems.push(`${name} names a file that cannot be read: ${path}.`);
    return null;
  }
}

const isThisMachine = (host: string): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i.test(host);
