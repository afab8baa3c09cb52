/**
 * Addresses of people in a sandbox: each is replaced by one that is not deliverable. The same address gets the same mask
 * everywhere in one copy, different ones get different masks, and nothing leads back: the key is made for the copy and not
 * kept. SQL. Source: docs/reference/moving-tenants.md#masks.
 */
import { literal } from '../../../lib/values/sql-text.ts';

const DOMAIN = '@sandbox.invalid';
const LOCAL_CHARS = 24;
/** No country has it. */
const COUNTRY = '+999';
const PHONE_DIGITS = 11;

const digest = (key: string, value: string): string =>
  `encode(sha256(convert_to(${literal(key)} || ${value}, 'UTF8')), 'hex')`;

/** `length`: of the field. A mask is as short as the field needs it. */
export function maskedEmail(key: string, value: string, length = 254): string {
  const local = Math.min(LOCAL_CHARS, length - DOMAIN.length);
  const mask = `left(${digest(key, value)}, ${Math.max(1, local)}) || ${literal(DOMAIN)}`;
  return local < 1 ? `left(${mask}, ${length})` : mask;
}

export function maskedPhone(key: string, value: string, length = 40): string {
  const number = `mod(('x' || left(${digest(key, value)}, 15))::bit(60)::bigint, ${10 ** PHONE_DIGITS})`;
  return `left(${literal(COUNTRY)} || lpad((${number})::text, ${PHONE_DIGITS}, '0'), ${length})`;
}
