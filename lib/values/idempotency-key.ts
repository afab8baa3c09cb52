/** The form of an idempotency key. Source: docs/reference/idempotency.md. */

export const IDEMPOTENCY_KEY_MIN_CHARS = 8;
export const IDEMPOTENCY_KEY_MAX_CHARS = 200;
export const IDEMPOTENCY_KEY_PATTERN = `^[A-Za-z0-9._:-]{${IDEMPOTENCY_KEY_MIN_CHARS},${IDEMPOTENCY_KEY_MAX_CHARS}}$`;
const LENGTH = `${IDEMPOTENCY_KEY_MIN_CHARS} to ${IDEMPOTENCY_KEY_MAX_CHARS}`;
export const IDEMPOTENCY_KEY_RULE = `Idempotency-Key must be ${LENGTH} letters, digits, periods, hyphens, underscores or colons.`;

const KEY = new RegExp(IDEMPOTENCY_KEY_PATTERN);

export const isIdempotencyKey = (text: string): boolean => KEY.test(text);
