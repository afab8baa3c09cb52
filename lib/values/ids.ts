/** Identifiers: pure functions of a time and random bytes, which services pass in (or use the defaults). */

import { randomBytes } from 'node:crypto';
import { platformTime } from './clock.ts';

/** One call to the random source serves many ids, because it costs more than the rest of creating an id. */
let pool: Uint8Array = new Uint8Array(0);
let used = 0;

function randomFromPool(count: number): Uint8Array {
  if (used + count > pool.length) {
    pool = randomBytes(4_096);
    used = 0;
  }
  used += count;
  return pool.subarray(used - count, used);
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** UUIDv7 in lower case (RFC 9562 section 5.7). */
export function uuidv7(now: number = platformTime(), random: Uint8Array = randomFromPool(10)): string {
  const time = Math.trunc(now).toString(16).padStart(12, '0');
  const hex = Buffer.from(random).toString('hex');
  const variant = (8 + (Number.parseInt(hex.charAt(3), 16) & 3)).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex.slice(0, 3)}-${variant}${hex.slice(4, 7)}-${hex.slice(7, 19)}`;
}

/** The smallest UUIDv7 of a millisecond. */
export function firstUuidv7(moment: number): string {
  const hex = Math.max(0, Math.trunc(moment)).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

/** `req_` and 26 Crockford base32 characters: 48 bits of time, 80 bits of randomness. */
export function requestId(now: number = platformTime(), random: Uint8Array = randomFromPool(16)): string {
  let time = Math.trunc(now);
  let head = '';
  for (let i = 0; i < 10; i++) {
    head = CROCKFORD.charAt(time % 32) + head;
    time = Math.floor(time / 32);
  }
  let tail = '';
  for (const byte of random) tail += CROCKFORD.charAt(byte & 31);
  return `req_${head}${tail}`;
}

const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export const isUuid = (text: unknown): text is string => typeof text === 'string' && UUID_PATTERN.test(text);
