/**
 * Finds the user of the tenant for a person at a provider. The first time by the username that the provider gives, in a domain
 * that is verified for the tenant; from then on by the provider's subject alone, whatever else it says. So no person takes over
 * a user who is connected with another person. Source: docs/reference/authentication.md#single-sign-on.
 */
import { SignInText } from '../../../contracts/auth.ts';
import type { SignInRefusalCode } from '../../../contracts/data.ts';
import { valueProblem } from '../../../lib/validation.ts';
import { displayNameProblem, USERNAME_MAX_CHARS, usernameProblem } from '../../../lib/values/user-names.ts';
import type { Clients } from '../clients.ts';
import type { Credential } from '../store/credentials.ts';
import type { AuthStore } from '../store/store.ts';
import type { Claims } from './openid.ts';
import { speaksFor, type TenantProvider } from './providers.ts';

/** A user that a first sign-in makes. */
interface NewUser {
  readonly username: string;
  readonly email: string;
  readonly displayName: string;
  readonly profileApiName: string;
  readonly roleApiName: string | null;
}

export interface PeopleParts {
  readonly store: AuthStore;
  readonly clients: Clients;
  /** True when the tenant already has a user of this name, active or not. */
  isUser(tenantId: string, username: string): Promise<boolean>;
  /** Creates a user, unless there is one of the name; auth knows the user afterwards. */
  createUser(tenantId: string, user: NewUser): Promise<void>;
}

type Person =
  | { readonly credential: Credential }
  | { readonly suspended: true }
  | { readonly refused: SignInRefusalCode; readonly userId: string | null; readonly username: string | null };

const SUBJECT_MAX_CHARS = 255;
const DISPLAY_NAME_MAX_CHARS = 255;

/** The suspension of a tenant is for its own people to hear of; nothing is written for it. */
export async function userOf(parts: PeopleParts, provider: TenantProvider, claims: Claims): Promise<Person> {
  const { tenantId } = provider;
  const { issuer, subject } = claims;
  if (subject.length > SUBJECT_MAX_CHARS || subject.includes('\0')) return refuse('IDENTITY_NOT_VERIFIED');
  const identity = { tenantId, issuer, subject };
  const known = await parts.store.identities.userOf(identity);
  if (known !== null) {
    const { userId, sessionGeneration } = known;
    const credential = await parts.store.credentials.find(tenantId, userId);
    const person = await usable(parts, provider, credential && { ...credential, sessionGeneration });
    return 'credential' in person && (await parts.clients.isSuspended(tenantId)) ? { suspended: true } : person;
  }
  const username = usernameIn(claims, provider);
  if (username === null || !(await speaksFor(parts, provider, username)))
    return refuse('IDENTITY_NOT_VERIFIED', null, username);
  if (await parts.clients.isSuspended(tenantId)) return { suspended: true };
  const credential =
    (await parts.store.credentials.byUsername(tenantId, username)) ??
    (await created(parts, provider, claims, username));
  if (!credential) return refuse('USER_UNKNOWN', null, username);
  const found = await usable(parts, provider, credential);
  if (!('credential' in found)) return found;
  if (await parts.store.identities.add(identity, credential.userId, provider.meta.apiName)) return found;
  // Two concurrent sign-ins of one person, or the user is another person.
  const now = await parts.store.identities.userOf(identity);
  return now?.userId === credential.userId ? found : refuse('IDENTITY_OF_ANOTHER', credential.userId, username);
}

const refuse = (refused: SignInRefusalCode, userId: string | null = null, username: string | null = null): Person => ({
  refused,
  userId,
  username,
});

/** The provider counts for an active user of its domains alone. */
async function usable(parts: PeopleParts, provider: TenantProvider, credential: Credential | null): Promise<Person> {
  if (!credential) return refuse('USER_UNKNOWN');
  const { userId, username } = credential;
  if (!credential.active) return refuse('USER_INACTIVE', userId, username);
  if (!(await speaksFor(parts, provider, username))) return refuse('IDENTITY_NOT_VERIFIED', userId, username);
  return { credential };
}

/** The username that the provider gives a person; null: none that can be one, or one that it says is not verified. */
function usernameIn(claims: Claims, { meta }: TenantProvider): string | null {
  const text = textIn(claims, meta.usernameClaim, USERNAME_MAX_CHARS);
  if (text === null || valueProblem(SignInText, text)) return null;
  return meta.usernameClaim === 'email' && !isVerified(claims) ? null : text;
}

/** A provider without the flag speaks for its own domains; some write it as a text. Any other value is not verified. */
const isVerified = (claims: Claims): boolean => VERIFIED.includes(claims.claim('email_verified'));

const VERIFIED: readonly unknown[] = [undefined, true, 'true'];

function textIn(claims: Claims, name: string, maxChars: number): string | null {
  const value = claims.claim(name);
  if (typeof value !== 'string' || value.length > maxChars) return null;
  const text = value.normalize('NFC').trim();
  return text === '' || text.includes('\0') ? null : text;
}

function shownName(claims: Claims): string | null {
  const name = textIn(claims, 'name', DISPLAY_NAME_MAX_CHARS);
  return name === null || displayNameProblem(name) !== null ? null : name;
}

/** A user who is not there yet, where the provider creates users. */
async function created(
  parts: PeopleParts,
  provider: TenantProvider,
  claims: Claims,
  username: string,
): Promise<Credential | null> {
  const { tenantId, meta } = provider;
  // A user of this name that auth does not know yet was created by other means, and may have been deactivated.
  if (!meta.createUsers || usernameProblem(username) !== null || (await parts.isUser(tenantId, username))) return null;
  const email = isVerified(claims) ? textIn(claims, 'email', USERNAME_MAX_CHARS) : null;
  await parts.createUser(tenantId, {
    username,
    email: email !== null && (await speaksFor(parts, provider, email)) ? email : username,
    displayName: shownName(claims) ?? username.slice(0, DISPLAY_NAME_MAX_CHARS),
    ...meta.createUsers,
  });
  return parts.store.credentials.byUsername(tenantId, username);
}
