/** An authenticator in software, as a browser offers it to a page: makes passkeys and signs with them (WebAuthn). */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { Encoder } from 'cbor-x';

interface Held {
  id: Buffer;
  privateKey: KeyObject;
  rpId: string;
  userHandle: string;
  counter: number;
}

/** Errors that a test injects. */
interface Misbehaviour {
  origin?: string;
  rpId?: string;
  challenge?: string;
  userVerified?: boolean;
  /** The counter that is sent; by default it grows by one. */
  counter?: number;
  userHandle?: string;
}

const cbor = new Encoder({ mapsAsObjects: false, useRecords: false, tagUint8Array: false });
const sha256 = (data: string | Buffer): Buffer => createHash('sha256').update(data).digest();
const base64url = (bytes: Buffer): string => bytes.toString('base64url');

const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;
const BACKUP_ELIGIBLE = 0x08;
const BACKED_UP = 0x10;
const ATTESTED = 0x40;

export class SoftwareAuthenticator {
  readonly #origin: string;
  readonly #held: Held[] = [];
  readonly #synced: boolean;

  constructor(origin: string, { synced = true } = {}) {
    this.#origin = origin;
    this.#synced = synced;
  }

  /** The answer of `navigator.credentials.create`, as `toJSON()` gives it. */
  create(optionsJson: string, wrong: Misbehaviour = {}): string {
    const options = JSON.parse(optionsJson);
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jwk = publicKey.export({ format: 'jwk' });
    const id = randomBytes(16);
    const passkey: Held = { id, privateKey, rpId: options.rp.id, userHandle: options.user.id, counter: 0 };
    this.#held.push(passkey);
    const coseKey = new Map<number, unknown>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, Buffer.from(jwk.x ?? '', 'base64url')],
      [-3, Buffer.from(jwk.y ?? '', 'base64url')],
    ]);
    const attested = Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, cbor.encode(coseKey)]);
    const authData = Buffer.concat([this.#authenticatorData(passkey, wrong, ATTESTED), attested]);
    const attestation = new Map<string, unknown>([
      ['fmt', 'none'],
      ['attStmt', new Map()],
      ['authData', authData],
    ]);
    return JSON.stringify({
      id: base64url(id),
      rawId: base64url(id),
      type: 'public-key',
      clientExtensionResults: {},
      authenticatorAttachment: 'platform',
      response: {
        clientDataJSON: base64url(this.#clientData('webauthn.create', options.challenge, wrong)),
        attestationObject: base64url(cbor.encode(attestation)),
        transports: ['internal', 'hybrid'],
      },
    });
  }

  /** The answer of `navigator.credentials.get`: the newest passkey that the options allow. */
  get(optionsJson: string, wrong: Misbehaviour = {}): string {
    const options = JSON.parse(optionsJson);
    const allowed: string[] = (options.allowCredentials ?? []).map(({ id }: { id: string }) => id);
    const passkey = this.#held.findLast(({ id }) => allowed.length === 0 || allowed.includes(base64url(id)));
    if (!passkey) throw new Error('NotAllowedError: no passkey of this authenticator is allowed.');
    passkey.counter += 1;
    const authData = this.#authenticatorData(passkey, wrong, 0);
    const clientData = this.#clientData('webauthn.get', options.challenge, wrong);
    const signature = sign('sha256', Buffer.concat([authData, sha256(clientData)]), passkey.privateKey);
    return JSON.stringify({
      id: base64url(passkey.id),
      rawId: base64url(passkey.id),
      type: 'public-key',
      clientExtensionResults: {},
      authenticatorAttachment: 'platform',
      response: {
        clientDataJSON: base64url(clientData),
        authenticatorData: base64url(authData),
        signature: base64url(signature),
        userHandle: wrong.userHandle ?? passkey.userHandle,
      },
    });
  }

  #clientData(type: string, challenge: string, wrong: Misbehaviour): Buffer {
    const origin = wrong.origin ?? this.#origin;
    return Buffer.from(JSON.stringify({ type, challenge: wrong.challenge ?? challenge, origin, crossOrigin: false }));
  }

  #authenticatorData(passkey: Held, wrong: Misbehaviour, more: number): Buffer {
    const backup = this.#synced ? BACKUP_ELIGIBLE | BACKED_UP : 0;
    const flags = USER_PRESENT | (wrong.userVerified === false ? 0 : USER_VERIFIED) | backup | more;
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(wrong.counter ?? passkey.counter);
    return Buffer.concat([sha256(wrong.rpId ?? passkey.rpId), Buffer.from([flags]), counter]);
  }
}
