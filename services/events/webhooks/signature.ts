/** Signatures of deliveries by Standard Webhooks 1.0. */
import { createHmac, createPrivateKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

export type Signing = 'hmac' | 'ed25519';

const SECRET_BYTES = 32;
/** PKCS #8 of an Ed25519 key: this, and its 32 bytes. */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI_BYTES = 12;

interface NewSecret {
  /** `whsec_…`, or `whsk_…` for Ed25519. */
  readonly secret: string;
  /** `whpk_…`; null: the receiver verifies with the secret. */
  readonly publicKey: string | null;
}

export function newSecret(signing: Signing): NewSecret {
  if (signing === 'hmac') return { secret: `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`, publicKey: null };
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const raw = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(PKCS8.length);
  const open = publicKey.export({ format: 'der', type: 'spki' }).subarray(SPKI_BYTES);
  return { secret: `whsk_${raw.toString('base64')}`, publicKey: `whpk_${open.toString('base64')}` };
}

/** Headers of a delivery, signed with each of the secrets. `seconds`: since 1970, of this attempt. */
export function signedHeaders(
  secrets: readonly string[],
  { id, seconds, body }: { readonly id: string; readonly seconds: number; readonly body: string },
): Record<string, string> {
  const text = `${id}.${seconds}.${body}`;
  return {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': secrets.map((secret) => signature(secret, text)).join(' '),
  };
}

function signature(secret: string, text: string): string {
  const [kind, key = ''] = secret.split('_', 2);
  const bytes = Buffer.from(key, 'base64');
  if (kind === 'whsec') return `v1,${createHmac('sha256', bytes).update(text).digest('base64')}`;
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8, bytes]), format: 'der', type: 'pkcs8' });
  return `v1a,${sign(null, Buffer.from(text), privateKey).toString('base64')}`;
}
