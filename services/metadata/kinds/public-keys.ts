/** Public keys with which a client proves itself (private_key_jwt): which of them the authorization server can use. */
import { createPublicKey } from 'node:crypto';

/** RSA, EC and OKP keys: these members are the private half. */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];
const RSA_BITS = { min: 2_048, max: 8_192 };
const RSA_MODULUS_MAX_CHARS = 1_400;

/** By what their `kty` and `crv` say. */
const ALGORITHMS: ReadonlyMap<string, readonly string[]> = new Map([
  ['EC P-256', ['ES256']],
  ['OKP Ed25519', ['EdDSA', 'Ed25519']],
  ['RSA', ['RS256', 'PS256']],
]);

type Jwk = Readonly<Record<string, unknown>>;

/** The problem with a key, as the end of a pointer and a sentence; null when it is valid. */
export function keyProblem(key: Jwk): { member: string; message: string } | null {
  if (PRIVATE_MEMBERS.some((member) => member in key) || key['kty'] === 'oct')
    return { member: '', message: 'Only the public half of a key belongs here.' };
  const { kty, crv, alg, use, kid } = key;
  const algorithms = ALGORITHMS.get(kty === 'RSA' ? 'RSA' : `${String(kty)} ${String(crv)}`);
  if (!algorithms)
    return { member: '', message: 'A key is of kty EC with crv P-256, of kty OKP with crv Ed25519, or of kty RSA.' };
  const problem = materialProblem(key);
  if (problem) return { member: '', message: problem };
  if (alg !== undefined && !(typeof alg === 'string' && algorithms.includes(alg)))
    return { member: '/alg', message: `The alg of this key is ${algorithms.join(' or ')}, or is left out.` };
  if (use !== undefined && use !== 'sig')
    return { member: '/use', message: 'A key here is for signatures: use is sig.' };
  if (kid !== undefined && (typeof kid !== 'string' || kid === ''))
    return { member: '/kid', message: 'A kid is a text that is not empty.' };
  return null;
}

function materialProblem(key: Jwk): string | null {
  if (String(key['n'] ?? '').length > RSA_MODULUS_MAX_CHARS) return rsaBits();
  try {
    const { asymmetricKeyDetails } = createPublicKey({ key, format: 'jwk' });
    const bits = asymmetricKeyDetails?.modulusLength;
    return bits !== undefined && (bits < RSA_BITS.min || bits > RSA_BITS.max) ? rsaBits() : null;
  } catch {
    return 'This is no public key (RFC 7517): its members are missing or damaged.';
  }
}

const rsaBits = (): string => `An RSA key has ${RSA_BITS.min} to ${RSA_BITS.max} bits.`;
