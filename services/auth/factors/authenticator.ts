/** Authenticator apps: time-based one-time passwords (RFC 6238), each time step at most once. */

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import encodeQr from 'qr';
import { platformTime } from '../../../lib/values/clock.ts';
import type { SignedInUser, UserKey } from '../store/factors.ts';
import type { AuthStore } from '../store/store.ts';

const ISSUER = 'ERP platform';
const PERIOD_SECONDS = 30;
const DIGITS = 6;
const SECRET_BYTES = 20;
/** Steps before and after the present one: clocks differ, and typing takes time. */
const WINDOW = 1;
/** How long a secret that is shown waits for its first code. */
const SETUP_SECONDS = 15 * 60;

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** An authenticator app that is being set up. */
interface Setup {
  /** For the form: the secret, which only this server can open, for this user alone. */
  sealed: string;
  /** For typing, in groups of four. */
  secret: string;
  uri: string;
  qrCode: string;
}

export class Authenticators {
  readonly #store: AuthStore;
  readonly #key: Buffer;

  constructor(store: AuthStore, key: string) {
    this.#store = store;
    this.#key = Buffer.from(hkdfSync('sha256', key, '', 'authenticator secrets', 32));
  }

  /** A new secret, or the one of a form that was sent with a wrong code. */
  setup(user: UserKey & { username: string }, sealed?: string): Setup {
    const again = sealed === undefined ? null : this.#openSetup(user, sealed);
    const secret = again ?? new Secret({ size: SECRET_BYTES });
    const uri = totp(secret, user.username).toString();
    return {
      sealed: again && sealed !== undefined ? sealed : this.#sealSetup(user, secret),
      secret: secret.base32.replace(/(.{4})(?=.)/g, '$1 '),
      uri,
      qrCode: encodeQr(uri, 'svg', { ecc: 'medium', border: 2 }),
    };
  }

  /** Stores the authenticator app when the code is one of the secret that was shown, and the sign-in has not ended. */
  async confirm(user: SignedInUser, sealed: string, code: string): Promise<boolean> {
    const secret = this.#openSetup(user, sealed);
    const step = secret && stepOf(secret, code);
    if (!secret || step === null) return false;
    const bytes = Buffer.from(secret.bytes);
    return this.#store.factors.setAuthenticator(user, this.#seal(bytes, stored(user)), step);
  }

  /** True when the code is currently valid for the user's app and was not used before. */
  async verify(user: UserKey, code: string): Promise<boolean> {
    const sealed = await this.#store.factors.authenticatorSecret(user);
    const bytes = sealed && this.#open(sealed, stored(user));
    const step = bytes && stepOf(secretOf(bytes), code);
    return step !== null && this.#store.factors.claimTimeStep(user, step);
  }

  #sealSetup(user: UserKey, secret: Secret): string {
    const ends = Buffer.alloc(6);
    ends.writeUIntBE(platformTime() + SETUP_SECONDS * 1_000, 0, 6);
    return this.#seal(Buffer.concat([ends, secret.bytes]), `setup ${user.userId}`).toString('base64url');
  }

  #openSetup(user: UserKey, sealed: string): Secret | null {
    if (sealed.length > 200) return null;
    const bytes = this.#open(Buffer.from(sealed, 'base64url'), `setup ${user.userId}`);
    return bytes && bytes.readUIntBE(0, 6) > platformTime() ? secretOf(bytes.subarray(6)) : null;
  }

  #seal(bytes: Buffer, purpose: string): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(purpose));
    const text = Buffer.concat([cipher.update(bytes), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), text]);
  }

  #open(sealed: Buffer, purpose: string): Buffer | null {
    try {
      const [nonce, tag] = [sealed.subarray(0, NONCE_BYTES), sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)];
      const decipher = createDecipheriv('aes-256-gcm', this.#key, nonce, { authTagLength: TAG_BYTES })
        .setAAD(Buffer.from(purpose))
        .setAuthTag(tag);
      return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
    } catch {
      return null;
    }
  }
}

const stored = ({ tenantId, userId }: UserKey): string => `authenticator ${tenantId} ${userId}`;

const secretOf = (bytes: Buffer): Secret => new Secret({ buffer: new Uint8Array(bytes).buffer });

const totp = (secret: Secret, label: string): TOTP =>
  new TOTP({ issuer: ISSUER, label, algorithm: 'SHA1', digits: DIGITS, period: PERIOD_SECONDS, secret });

/** The time step whose code this is; null when it is none of the steps around now. */
function stepOf(secret: Secret, code: string): number | null {
  const token = code.slice(0, 40).replace(/\s/g, '');
  if (!/^\d{6}$/.test(token)) return null;
  const timestamp = platformTime();
  const delta = totp(secret, ISSUER).validate({ token, timestamp, window: WINDOW });
  return delta === null ? null : Math.floor(timestamp / 1_000 / PERIOD_SECONDS) + delta;
}
