/**
 * Passwords and who may try them: argon2id, the same answer and the same time for an unknown user as for a wrong
 * password, and a wait that grows with every failure, per username and per network address (IPv6: the first 64 bits).
 */
import { createHash, randomBytes } from 'node:crypto';
import { hash, verify } from '@node-rs/argon2';
import { networkOf } from '../../lib/values/network.ts';
import type { Credential } from './store/credentials.ts';
import type { AuthStore } from './store/store.ts';

export const PASSWORD_MIN_CHARS = 10;
export const PASSWORD_MAX_CHARS = 200;
export const LINK_VALID_SECONDS = 7 * 86_400;

const USERNAME_FREE_FAILURES = 5;
const USERNAME_WAIT_MAX_SECONDS = 300;
/** Many people may share an address. */
const ADDRESS_FREE_FAILURES = 30;
const ADDRESS_WAIT_MAX_SECONDS = 60;

// argon2id with 19 MiB, two passes, one lane (RFC 9106; the package's defaults).
export const hashPassword = (password: string): Promise<string> => hash(password.normalize('NFKC'));
export const verifyPassword = (stored: string, password: string): Promise<boolean> =>
  verify(stored, password.normalize('NFKC'));

/** Why a chosen password is refused, as a sentence for its user; null when it is accepted. */
export function passwordProblem(password: string, username: string): string | null {
  const length = [...password].length;
  if (length < PASSWORD_MIN_CHARS) return `Use at least ${PASSWORD_MIN_CHARS} characters.`;
  if (length > PASSWORD_MAX_CHARS) return `Use at most ${PASSWORD_MAX_CHARS} characters.`;
  if (password.toLowerCase() === username.toLowerCase()) return 'Use something other than your username.';
  if (new Set(password).size < 4) return 'Use more than a few different characters.';
  return null;
}

export type SignIn =
  | { outcome: 'signedIn'; credential: Credential }
  | { outcome: 'refused' }
  | { outcome: 'wait'; seconds: number };

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url');

// Verified when there is no user, so that absence takes as long as a wrong password.
let decoy: Promise<string> | undefined;

/**
 * Checks a username and a password. With `tenantId` (of a client that belongs to one tenant), the right password of a
 * user of another tenant is refused like a wrong one.
 */
export async function signIn(
  store: AuthStore,
  attempt: { username: string; password: string; address: string; tenantId: string | null },
): Promise<SignIn> {
  const username = attempt.username.trim();
  const byUsername = `user ${digest(username.toLowerCase())}`;
  const byAddress = `address ${networkOf(attempt.address)}`;
  const waits = await Promise.all([
    store.attempts.count(byUsername, USERNAME_FREE_FAILURES, USERNAME_WAIT_MAX_SECONDS),
    store.attempts.count(byAddress, ADDRESS_FREE_FAILURES, ADDRESS_WAIT_MAX_SECONDS),
  ]);
  const seconds = Math.max(...waits);
  if (seconds > 0) return { outcome: 'wait', seconds };
  const credential = await store.credentials.byUsername(username);
  const usable = credential?.active === true && (attempt.tenantId === null || attempt.tenantId === credential.tenantId);
  decoy ??= hashPassword(randomBytes(24).toString('base64url'));
  const stored = usable ? credential.passwordHash : null;
  const right = await verifyPassword(stored ?? (await decoy), attempt.password.slice(0, 4 * PASSWORD_MAX_CHARS));
  if (!usable || stored === null || !right) return { outcome: 'refused' };
  await Promise.all([
    store.attempts.forget(byUsername),
    store.attempts.uncount(byAddress),
    store.credentials.recordSignIn(credential.tenantId, credential.userId),
  ]);
  return { outcome: 'signedIn', credential };
}

export const hashLinkToken = (token: string): Buffer => createHash('sha256').update(token).digest();

/** Makes the token of a single-use link: 256 random bits, of which the database stores the hash. */
export async function createLinkToken(store: AuthStore, tenantId: string, userId: string): Promise<string> {
  const token = randomBytes(32).toString('base64url');
  await store.credentials.createLink(tenantId, userId, hashLinkToken(token), LINK_VALID_SECONDS);
  return token;
}
