/**
 * Secrets that auth stores and only auth may read: encrypted with a key derived from the deployment's secret and bound to its
 * id, or as it is where there is no secret. While the secret is replaced, what the previous one sealed still opens.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { type DeploymentSecrets, derivedKeys } from '../../lib/values/derived-keys.ts';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** As it stands in a table: one of the two is null. */
export interface Kept {
  plain: Record<string, unknown> | null;
  sealed: Buffer | null;
}

export class Vault {
  readonly #keys: readonly Buffer[];

  constructor(secrets: DeploymentSecrets) {
    this.#keys = derivedKeys(secrets, 'auth key encryption');
  }

  seal(id: string, value: Record<string, unknown>): Kept {
    const [key] = this.#keys;
    if (!key) return { plain: value, sealed: null };
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(id));
    const text = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
    return { plain: null, sealed: Buffer.concat([nonce, cipher.getAuthTag(), text]) };
  }

  /** Throws when none of the deployment's secrets opens it. */
  open(id: string, { plain, sealed }: Kept): Record<string, unknown> {
    if (plain) return plain;
    if (this.#keys.length === 0 || !sealed)
      throw new Error('The keys in the database are sealed: PLATFORM_SECRET must be set as before.');
    const opened = this.#keys.map((key) => opens(key, id, sealed)).find((value) => value !== null);
    if (opened) return opened;
    throw new Error('The keys in the database were sealed with another PLATFORM_SECRET.');
  }

  /** True when it is sealed the way that `seal` seals now. */
  isCurrent(id: string, { sealed }: Kept): boolean {
    const [key] = this.#keys;
    if (!key || !sealed) return !key && !sealed;
    return opens(key, id, sealed) !== null;
  }
}

function opens(key: Buffer, id: string, sealed: Buffer): Record<string, unknown> | null {
  const tagEnd = NONCE_BYTES + TAG_BYTES;
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(id))
    .setAuthTag(sealed.subarray(NONCE_BYTES, tagEnd));
  let text: string;
  try {
    text = Buffer.concat([decipher.update(sealed.subarray(tagEnd)), decipher.final()]).toString('utf8');
  } catch {
    return null;
  }
  return JSON.parse(text);
}
