/**
 * Settings that are refused in production: no secret or a guessable one, passwords that are public because they stand in
 * documentation, images or lists, and connections that others can read.
 * Source: docs/reference/configuration.md#in-production.
 */
import type { ServiceName } from './services.ts';

const SECRET_MIN_CHARS = 32;
/** A random UUID has fewer than this once in some hundred million. */
const SECRET_MIN_DIFFERENT_CHARS = 8;

/** Words of a typed or copied secret; 32 random characters contain none of them. */
const TYPED = /change.?me|password|passw0rd|secret|example|platform|default|1234567|abcdefg|qwerty/i;

/** Passwords of examples, images and first tries, in lower case. The user's own name counts as one, too. */
const KNOWN_PASSWORDS: ReadonlySet<string> = new Set([
  'admin',
  'administrator',
  'changeit',
  'changeme',
  'change-me',
  'database',
  'default',
  'demo',
  'demo-password',
  'dev',
  'development',
  'docker',
  'erp',
  'example',
  'guest',
  'letmein',
  'nats',
  'pass',
  'passw0rd',
  'password',
  'password1',
  'platform',
  'postgres',
  'postgresql',
  'qwerty',
  'root',
  's3cret',
  'secret',
  'super',
  'sys',
  'system',
  'test',
  'toor',
  'user',
  'welcome',
]);

/** Variables that hold an address with a password in it. */
const ADDRESSES = /^(?:DATABASE|NATS|SMTP)_URL/;

const NEW_SECRET = 'make one with: openssl rand -base64 48';

interface ProcessKind {
  /** A short-lived operator's program, which seals nothing and serves no requests. */
  readonly command: boolean;
  readonly services: readonly ServiceName[];
}

/** A sentence per problem, none of which repeats a secret. */
export function productionProblems(env: NodeJS.ProcessEnv, { command, services }: ProcessKind): string[] {
  return [
    // Of the one before nothing is asked: that it can be guessed may be why it is replaced.
    ...(command && !env['PLATFORM_SECRET'] ? [] : secretProblems(env['PLATFORM_SECRET'])),
    ...(env['FILES_KEY'] && isGuessable(env['FILES_KEY']) ? [`FILES_KEY can be guessed: ${NEW_SECRET}`] : []),
    ...Object.keys(env)
      .filter((name) => ADDRESSES.test(name) && (env[name] ?? '').split(',').some(hasKnownPassword))
      .sort()
      .map((name) => `${name} has a password that everybody knows: set another one there and on the server.`),
    ...(command ? [] : databaseMissing(env, services)),
    ...(env['DATABASE_ALLOW_INSECURE'] === 'true' ? [] : unprotectedDatabases(env)),
    ...(command || !services.includes('gateway') || env['BASE_URL_ALLOW_INSECURE'] === 'true' ? [] : baseUrl(env)),
  ];
}

/** The embedded database has one password for all services, no backups, and goes with the folder. */
function databaseMissing(env: NodeJS.ProcessEnv, services: readonly ServiceName[]): string[] {
  const lacks = services.some((service) => !env[`DATABASE_URL_${service.toUpperCase()}`]) && !env['DATABASE_URL'];
  return lacks ? ['DATABASE_URL is not set: the embedded database is for development and trials.'] : [];
}

/** Modes of sslmode that never fall back to plain text, and check the server's certificate. */
const CHECKED_MODES: ReadonlySet<string | null> = new Set(['require', 'verify-ca', 'verify-full']);

function unprotectedDatabases(env: NodeJS.ProcessEnv): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith('DATABASE_URL') && isUnprotected(env[name] ?? ''))
    .sort()
    .map(
      (name) =>
        `${name} reaches another host without TLS: append ?sslmode=verify-full&sslrootcert=<file>, or set ` +
        'DATABASE_ALLOW_INSECURE=true where the network alone protects the database.',
    );
}

function isUnprotected(address: string): boolean {
  const url = URL.parse(address);
  if (!url) return false;
  const host = url.searchParams.get('host') || decoded(url.hostname);
  if (host === '' || host.startsWith('/') || isThisMachine(host)) return false;
  // The driver checks no certificate for `require` where it is asked to do as libpq does.
  return !CHECKED_MODES.has(url.searchParams.get('sslmode')) || url.searchParams.get('uselibpqcompat') === 'true';
}

function baseUrl(env: NodeJS.ProcessEnv): string[] {
  const unless = 'or set BASE_URL_ALLOW_INSECURE=true where callers reach the platform without TLS on purpose.';
  if (!env['BASE_URL']) return [`BASE_URL is not set: give the https:// address that callers use, ${unless}`];
  const url = URL.parse(env['BASE_URL']);
  return url?.protocol === 'http:' && !isThisMachine(url.hostname)
    ? [`BASE_URL must begin with https://, ${unless}`]
    : [];
}

const isThisMachine = (host: string): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/i.test(host);

function secretProblems(secret: string | undefined): string[] {
  if (!secret) return [`PLATFORM_SECRET is not set: ${NEW_SECRET}`];
  return isGuessable(secret) ? [`PLATFORM_SECRET can be guessed: ${NEW_SECRET}`] : [];
}

function isGuessable(secret: string): boolean {
  const repeats = (secret + secret).indexOf(secret, 1) < secret.length;
  const tooUniform = new Set(secret).size < SECRET_MIN_DIFFERENT_CHARS;
  return secret.length < SECRET_MIN_CHARS || repeats || tooUniform || TYPED.test(secret);
}

function hasKnownPassword(address: string): boolean {
  const url = URL.parse(address);
  if (!url) return false;
  const user = decoded(url.username).toLowerCase();
  // PostgreSQL takes a password as a parameter as well; NATS takes what stands there alone as a token.
  const alone = /^(?:nats|tls):$/.test(url.protocol) ? url.username : '';
  const password = decoded(url.password || url.searchParams.get('password') || alone).toLowerCase();
  return KNOWN_PASSWORDS.has(password) || /^\d{1,8}$/.test(password) || (url.password !== '' && password === user);
}

/** A URL's text without percent signs that mean something; as it is where they mean nothing. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
