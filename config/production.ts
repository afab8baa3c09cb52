/**
 * What must not be in production: no secret or a guessable one, and passwords that everybody knows because they stand
 * in documentation, images or lists. Source: docs/reference/configuration.md#in-production.
 */

const SECRET_MIN_CHARS = 32;
const SECRET_MIN_DIFFERENT_CHARS = 10;

/** Words of a secret that somebody typed or copied; 32 random characters have none of them. */
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
const ADDRESSES = /^(?:DATABASE|NATS)_URL/;

const NEW_SECRET = 'make one with: openssl rand -base64 48';

/** A sentence per problem, none of which repeats a secret. */
export function productionProblems(env: NodeJS.ProcessEnv, { command = false }: { command?: boolean }): string[] {
  return [
    // Of the one before nothing is asked: that it can be guessed may be why it is replaced.
    ...(command && !env['PLATFORM_SECRET'] ? [] : secretProblems(env['PLATFORM_SECRET'])),
    ...Object.keys(env)
      .filter((name) => ADDRESSES.test(name) && (env[name] ?? '').split(',').some(hasKnownPassword))
      .sort()
      .map((name) => `${name} has a password that everybody knows: set another one there and on the server.`),
  ];
}

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
  const alone = url.protocol.startsWith('postgres') ? '' : url.username;
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
