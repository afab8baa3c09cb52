/**
 * Passwords and who may try them: argon2id, the same answer and the same time for an unknown user as for a wrong
 * password, and a wait that grows with every failure.
 */
import { createHash, randomBytes } from 'node:crypto';
import { hash, verify } from '@node-rs/argon2';
import type { SignInRefusalCode } from '../../contracts/data.ts';
import { networkOf } from '../../lib/values/network.ts';
import type { Holder } from '../../mixins/fair-queue.ts';
import { type AttemptCounter, networkCounter, TENANT_ATTEMPTS, USER_ATTEMPTS } from './attempt-limits.ts';
import type { Clients } from './clients.ts';
import { hashQueue, PLATFORM, placeOf, QueueFull } from './hash-queue.ts';
import type { Refusal } from './refusals.ts';
import type { Credential, SignInCredential } from './store/credentials.ts';
import { operatorAct } from './store/entries.ts';
import { browserOrigin, networkOrigin } from './store/known-origins.ts';
import type { AuthStore } from './store/store.ts';
import { NO_TENANT, type TypedName, typedName } from './usernames.ts';

export const PASSWORD_MIN_CHARS = 10;
const PASSWORD_MAX_CHARS = 200;
export const LINK_VALID_SECONDS = 7 * 86_400;
/** Of a link that an administrator hands over. */
export const HANDED_OVER_SECONDS = 86_400;

const QUEUE_FULL_WAIT_SECONDS = 2;

const queue = hashQueue();

// argon2id with 19 MiB, two passes, one lane (RFC 9106; the package's defaults), on the thread pool.
export const hashPassword = (password: string, place: Holder = PLATFORM): Promise<string> =>
  queue.run(place, () => hash(password.normalize('NFKC')));
export const verifyPassword = (stored: string, password: string, place: Holder = PLATFORM): Promise<boolean> =>
  queue.run(place, () => verify(stored, password.normalize('NFKC')));

/** Why a chosen password is refused, as a sentence for its user; null when it is accepted. */
export function passwordProblem(password: string, username: string): string | null {
  const length = [...password].length;
  if (length < PASSWORD_MIN_CHARS) return `Use at least ${PASSWORD_MIN_CHARS} characters.`;
  if (length > PASSWORD_MAX_CHARS) return `Use at most ${PASSWORD_MAX_CHARS} characters.`;
  if (password.toLowerCase() === username.toLowerCase()) return 'Use something other than your username.';
  if (new Set(password).size < 4) return 'Use more than a few different characters.';
  return null;
}

type SignIn =
  | { outcome: 'signedIn'; credential: Credential; browser: string }
  | { outcome: 'refused'; refusal: Refusal }
  | { outcome: 'wait'; seconds: number; refusal: Refusal };

interface SignInParts {
  store: AuthStore;
  clients: Clients;
}

interface SignInAttempt {
  username: string;
  password: string;
  address: string;
  /** The value of the browser's cookie from an earlier sign-in; null without one. */
  browser: string | null;
  /** Of a domain whose users sign in at a provider: users who may still use a password; null: all. */
  mayUsePassword: ((user: Credential) => Promise<boolean>) | null;
  /** The client belongs to this tenant: the right password of a user of another one is refused like a wrong one. */
  tenantId: string | null;
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

// Verified when there is no user, so that absence takes as long as a wrong password.
let decoy: Promise<string> | undefined;

/**
 * Checks a username and a password. Guesses are counted per network, per user and per tenant, each in this order and
 * none by an attempt that an earlier count has refused: a blocked network blocks no user's name. Where the user has
 * signed in before, in this browser or from this network, failures are counted apart from those of strangers, so that
 * the right password passes whatever others guess.
 */
export async function signIn({ store, clients }: SignInParts, attempt: SignInAttempt): Promise<SignIn> {
  const name = await typedName(clients, attempt.username);
  const network = networkOf(attempt.address);
  const browser = attempt.browser === null ? null : browserOrigin(attempt.browser);
  const ofNetwork = networkOrigin(attempt.address);
  const tenantId = name.tenantId ?? attempt.tenantId;
  const meant = await store.credentials.forSignIn({ ...name, tenantId, browser, network: ofNetwork });
  const found = meant.credential;
  const counters = countersFor(meant, name, attempt.address, browser, ofNetwork);
  const place = placeOf(network, found !== null && (found.knownBrowser || found.knownNetwork));
  const refusal = (code: SignInRefusalCode): Refusal => ({
    code,
    tenantId: meant.tenantId === NO_TENANT ? null : meant.tenantId,
    userId: found?.userId ?? null,
  });
  const wait = (seconds: number): SignIn => ({ outcome: 'wait', seconds, refusal: refusal('SIGN_IN_BLOCKED') });
  if (!queue.hasRoom(place)) return wait(QUEUE_FULL_WAIT_SECONDS);
  const seconds = await store.attempts.count(counters);
  if (seconds > 0) return wait(seconds);
  const unusable = whyUnusable(found, attempt.tenantId);
  const stored = unusable ? null : (found?.passwordHash ?? null);
  // At the same time, so that the answer does not come later for who has typed the right password.
  const [right, mayUse] = await Promise.all([
    verifyOrPretend(stored, attempt.password.slice(0, 4 * PASSWORD_MAX_CHARS), place),
    // A user who cannot be looked up is refused like all others.
    found && attempt.mayUsePassword ? attempt.mayUsePassword(found).catch(() => false) : true,
  ]);
  if (right === 'busy') return wait(QUEUE_FULL_WAIT_SECONDS);
  if (!found || !right) return { outcome: 'refused', refusal: refusal(unusable ?? 'PASSWORD_WRONG') };
  if (!mayUse) return { outcome: 'refused', refusal: refusal('SINGLE_SIGN_ON_REQUIRED') };
  const token = attempt.browser ?? randomBytes(32).toString('base64url');
  const { userId } = found;
  await Promise.all([store.attempts.takeBack(counters), store.credentials.recordSignIn(found.tenantId, userId)]);
  return { outcome: 'signedIn', credential: found, browser: token };
}

/** Why no password at all would do; null when the right one does. */
function whyUnusable(found: Credential | null, clientTenantId: string | null): SignInRefusalCode | null {
  if (!found) return 'USER_UNKNOWN';
  if (clientTenantId !== null && clientTenantId !== found.tenantId) return 'CLIENT_NOT_ALLOWED';
  if (!found.active) return 'USER_INACTIVE';
  return found.passwordHash === null ? 'PASSWORD_NOT_SET' : null;
}

/** Counters of an attempt, in their order. */
function countersFor(
  { tenantId, credential: found }: { tenantId: string | null; credential: SignInCredential | null },
  { username, domain }: TypedName,
  address: string,
  browser: Buffer | null,
  ofNetwork: Buffer,
): AttemptCounter[] {
  // An unknown name counts like a user. By the user's id, since several spellings may mean one user.
  const name = found?.userId ?? digest(`${tenantId} ${username.toLowerCase()}`).toString('base64url');
  const ofName = { limit: USER_ATTEMPTS, shared: false };
  const known = (origin: Buffer): AttemptCounter => ({
    ...ofName,
    key: `known ${origin.toString('base64url')} ${name}`,
  });
  if (found?.knownBrowser && browser) return [known(browser)];
  const byNetwork = networkCounter(address);
  if (found?.knownNetwork) return [byNetwork, known(ofNetwork)];
  const byTenant: AttemptCounter = {
    key: `tenant ${tenantId ?? digest(domain ?? '').toString('base64url')}`,
    limit: TENANT_ATTEMPTS,
    shared: true,
  };
  return [byNetwork, { ...ofName, key: `user ${name}` }, byTenant];
}

/** One hash of the same cost in every case. */
async function verifyOrPretend(stored: string | null, password: string, place: Holder): Promise<boolean | 'busy'> {
  try {
    decoy ??= hashPassword(randomBytes(24).toString('base64url'));
    const right = await verifyPassword(stored ?? (await decoy), password, place);
    return right && stored !== null;
  } catch (error) {
    if (error instanceof QueueFull) return 'busy';
    throw error;
  }
}

export const hashLinkToken = (token: string): Buffer => createHash('sha256').update(token).digest();

/** 256 random bits, of which the database stores the hash. */
export const newLinkToken = (): string => randomBytes(32).toString('base64url');

/** Makes the token of a single-use link that an operator hands over. */
export async function createLinkToken(store: AuthStore, tenantId: string, userId: string): Promise<string> {
  const token = newLinkToken();
  const entry = operatorAct('auth.users.createLink', { userId });
  await store.credentials.createLink({ tenantId, userId, tokenHash: hashLinkToken(token) }, LINK_VALID_SECONDS, entry);
  return token;
}
