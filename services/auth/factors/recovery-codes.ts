/** Recovery codes: ten, each good for one sign-in without the second factor, shown once and kept as hashes. */
import { createHash, randomBytes } from 'node:crypto';
import { errors } from 'oidc-provider';
import type { SignedInUser, UserKey } from '../store/factors.ts';
import type { AuthStore } from '../store/store.ts';

const RECOVERY_CODES = 10;

/** No letter or digit that looks like another one (Crockford's base 32). */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
/** 80 random bits: out of reach of brute force on hashes. */
const CODE_CHARS = 16;

const makeCode = (): string => Array.from(randomBytes(CODE_CHARS), (byte) => ALPHABET[byte % 32]).join('');

const hashCode = (code: string): Buffer => createHash('sha256').update(code).digest();

/**
 * Makes new codes, in groups of four as they are shown; earlier ones end. `asked`: by the user, for themselves. Throws
 * invalid_request when the sign-in has ended.
 */
export async function makeRecoveryCodes(
  store: AuthStore,
  user: SignedInUser,
  { asked = false } = {},
): Promise<string[]> {
  const codes = Array.from({ length: RECOVERY_CODES }, makeCode);
  if (!(await store.factors.replaceRecoveryCodes(user, codes.map(hashCode), asked)))
    throw new errors.InvalidRequest('the sign-in has ended');
  return codes.map((code) => code.replace(/(.{4})(?=.)/g, '$1-'));
}

/** Uses a code up; false when the user has no such code. */
export async function spendRecoveryCode(store: AuthStore, user: UserKey, typed: string): Promise<boolean> {
  const code = typed.slice(0, 60).toUpperCase().replace(/[\s-]/g, '').replace(/O/g, '0').replace(/[IL]/g, '1');
  return /^[0-9A-Z]{16}$/.test(code) && store.factors.claimRecoveryCode(user, hashCode(code));
}
