/** Passkeys (WebAuthn level 3): registering one, and signing in with one. */
import {
  type AuthenticationResponseJSON,
  type AuthenticatorTransport,
  generateAuthenticationOptions,
  generateRegistrationOptions,
  type RegistrationResponseJSON,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server';
import type { KnownPasskey, SignedInUser, UserKey } from '../store/factors.ts';
import type { AuthStore } from '../store/store.ts';
import { Challenges } from './challenges.ts';

/** Maximum length of a browser's response; larger ones are not parsed. */
const RESPONSE_MAX_CHARS = 16_384;
const PASSKEY_NAME_MAX_CHARS = 60;
/** ES256, EdDSA, RS256: what authenticators offer (COSE algorithm identifiers). */
const ALGORITHMS = [-7, -8, -257];
const TRANSPORTS: ReadonlySet<string> = new Set(['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb']);
const CEREMONY_TIMEOUT_MS = 300_000;

export class Passkeys {
  readonly #store: AuthStore;
  readonly #challenges: Challenges;
  readonly #origin: string;
  readonly #rpId: string;

  constructor(store: AuthStore, { issuer, key }: { issuer: string; key: string }) {
    this.#store = store;
    this.#challenges = new Challenges(key, store.artifacts);
    const { origin, hostname } = new URL(issuer);
    this.#origin = origin;
    this.#rpId = hostname;
  }

  /** Options for `navigator.credentials.create`, as JSON for the page. */
  async registrationOptions(user: UserKey & { username: string }, binding: string): Promise<string> {
    const held = await this.#store.factors.passkeys(user);
    const options = await generateRegistrationOptions({
      rpName: 'ERP platform',
      rpID: this.#rpId,
      userName: user.username,
      userDisplayName: user.username,
      userID: new Uint8Array(userHandle(user)),
      challenge: Buffer.from(this.#challenges.make(registration(binding, user)), 'base64url'),
      timeout: CEREMONY_TIMEOUT_MS,
      attestationType: 'none',
      excludeCredentials: held.map(({ id, transports }) => ({ id, transports: known(transports) })),
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      supportedAlgorithmIDs: ALGORITHMS,
    });
    return JSON.stringify(options);
  }

  /**
   * Stores the passkey that a browser has made; false when its answer does not hold, the user has too many, or the
   * sign-in has ended.
   */
  async register(user: SignedInUser, binding: string, answer: string, name: string): Promise<boolean> {
    const response = parsed<RegistrationResponseJSON>(answer);
    if (!response) return false;
    let challenge = '';
    const verified = await verifyRegistrationResponse({
      response,
      expectedChallenge: (given) => {
        challenge = given;
        return this.#challenges.isValid(given, registration(binding, user));
      },
      expectedOrigin: this.#origin,
      expectedRPID: this.#rpId,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    }).catch(() => null);
    if (!verified?.verified || !(await this.#challenges.use(challenge))) return false;
    const { credential, credentialDeviceType, credentialBackedUp } = verified.registrationInfo;
    return this.#store.factors.addPasskey({
      tenantId: user.tenantId,
      userId: user.userId,
      sessionGeneration: user.sessionGeneration,
      id: credential.id,
      name: passkeyName(name),
      publicKey: Buffer.from(credential.publicKey),
      counter: credential.counter,
      transports: known(credential.transports ?? []),
      backupEligible: credentialDeviceType === 'multiDevice',
      backedUp: credentialBackedUp,
    });
  }

  /** Options for `navigator.credentials.get`; with a user, one of that user's passkeys is asked for. */
  async signInOptions(binding: string, user: UserKey | null): Promise<string> {
    const allowed = user ? await this.#store.factors.passkeys(user) : [];
    const options = await generateAuthenticationOptions({
      rpID: this.#rpId,
      challenge: Buffer.from(this.#challenges.make(binding), 'base64url'),
      timeout: CEREMONY_TIMEOUT_MS,
      userVerification: 'required',
      allowCredentials: allowed.map(({ id, transports }) => ({ id, transports: known(transports) })),
    });
    return JSON.stringify(options);
  }

  /**
   * The passkey with which a person answered; null when the answer does not hold: another site, another browser, a used
   * or expired challenge, a copied key, or no passkey of ours.
   */
  async verify(binding: string, answer: string): Promise<KnownPasskey | null> {
    const response = parsed<AuthenticationResponseJSON>(answer);
    if (!response || !isCredentialId(response.id)) return null;
    const passkey = await this.#store.factors.passkey(response.id);
    if (!passkey) return null;
    const handle = response.response.userHandle;
    if (handle && handle !== userHandle(passkey).toString('base64url')) return null;
    let challenge = '';
    const verified = await verifyAuthenticationResponse({
      response,
      expectedChallenge: (given) => {
        challenge = given;
        return this.#challenges.isValid(given, binding);
      },
      expectedOrigin: this.#origin,
      expectedRPID: this.#rpId,
      requireUserVerification: true,
      credential: {
        id: passkey.id,
        publicKey: new Uint8Array(passkey.publicKey),
        counter: passkey.counter,
        transports: known(passkey.transports),
      },
    }).catch(() => null);
    if (!verified?.verified || !(await this.#challenges.use(challenge))) return null;
    const { newCounter, credentialBackedUp } = verified.authenticationInfo;
    const used = { ...passkey, counter: newCounter, backedUp: credentialBackedUp };
    return (await this.#store.factors.markPasskeyUsed(used)) ? used : null;
  }
}

/** User handle stored with the passkey: the user's id, which reveals nothing about the person. */
const userHandle = ({ userId }: UserKey): Buffer => Buffer.from(userId.replaceAll('-', ''), 'hex');

const registration = (binding: string, { userId }: UserKey): string => `register ${userId} ${binding}`;

/** The name that a person gave, in one line; never empty. */
export const passkeyName = (name: string): string =>
  [
    ...name
      .slice(0, 4 * PASSKEY_NAME_MAX_CHARS)
      .replace(/[\p{C}\s]+/gu, ' ')
      .trim(),
  ]
    .slice(0, PASSKEY_NAME_MAX_CHARS)
    .join('') || 'Passkey';

const isCredentialId = (id: unknown): id is string => typeof id === 'string' && /^[\w-]{1,1400}$/.test(id);

const known = (transports: readonly string[]): AuthenticatorTransport[] =>
  transports.filter((one): one is AuthenticatorTransport => TRANSPORTS.has(one));

/** The browser's answer; what is missing in it is found by its verification, which refuses it. */
function parsed<Answer extends { id: string; response: object }>(text: string): Answer | null {
  if (text.length > RESPONSE_MAX_CHARS) return null;
  try {
    const answer: Answer | null = JSON.parse(text);
    return typeof answer?.response === 'object' && answer.response !== null ? answer : null;
  } catch {
    return null;
  }
}
