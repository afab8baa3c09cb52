/**
 * Strict JSON (RFC 8259 with the rules of I-JSON, RFC 7493, that protect data): no duplicate names, no lone surrogates
 * or U+0000, no integer that loses digits, and bounds on depth, numbers, values and white space. `JSON.parse` builds
 * the value; a scan of the text finds first what `JSON.parse` would accept silently or work on for too long. Both take
 * time in proportion to the text.
 */
import { isUtf8 } from 'node:buffer';
import { ExactNumber, NUMBER_MAX_CHARS, withoutTrailingZeros } from './exact-number.ts';

/** The text is not acceptable JSON; the message says why. */
export class JsonError extends Error {
  override readonly name = 'JsonError';
  readonly details: Record<string, unknown> | undefined;

  constructor(message: string, details?: Record<string, unknown>) {
    super(message);
    this.details = details;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SUSPICIOUS_ESCAPE = /\\u(?:0000|[dD][89a-fA-F])/;
const EXACT_DIGITS = 15;
const SHOWN_CHARS = 40;
/**
 * Values of all objects and arrays together: each costs more time than its characters, here and in what follows. The
 * longest list that a json field takes fits.
 */
const JSON_VALUES_MAX = 70_000;
/**
 * Members of all objects together: each costs several times what an item of a list does, and more where one is unknown.
 * The largest package of files fits.
 */
const JSON_MEMBERS_MAX = 15_000;
/** Characters between the values, as many as the largest body of records has in all. */
const WHITE_SPACE_MAX_CHARS = 1_048_576;

/** Result of the scan of a text that may still be malformed. */
interface Scan {
  members: number;
  /** At least one number has more digits than a double is certain to keep. */
  exact: boolean;
}

function scan(text: string, maxDepth: number): Scan {
  let members = 0;
  let depth = 0;
  let exact = false;
  let values = 0;
  let blanks = 0;
  const end = text.length;
  for (let at = 0; at < end; at++) {
    const c = text.charCodeAt(at);
    if (c === QUOTE) {
      at = closingQuote(text, at);
      if (at < 0) break; // JSON.parse says what is wrong
    } else if (c === 0x3a) {
      if (++members > JSON_MEMBERS_MAX) throw tooMany('members', JSON_MEMBERS_MAX);
    } else if (c === 0x2c) {
      if (++values > JSON_VALUES_MAX) throw tooMany('values', JSON_VALUES_MAX);
    } else if (c === 0x7b || c === 0x5b) {
      if (++values > JSON_VALUES_MAX) throw tooMany('values', JSON_VALUES_MAX);
      if (++depth > maxDepth) throw new JsonError(`The JSON is nested deeper than ${maxDepth} levels.`, { maxDepth });
    } else if (c === 0x7d || c === 0x5d) depth--;
    else if (c === 0x2d || (c >= 0x30 && c <= 0x39)) {
      const start = at;
      while (at + 1 < end && isNumberPart(text.charCodeAt(at + 1))) at++;
      if (at - start >= NUMBER_MAX_CHARS)
        throw new JsonError(
          `The number ${text.slice(start, start + SHOWN_CHARS)}… exceeds ${NUMBER_MAX_CHARS} characters.`,
        );
      if (at - start >= EXACT_DIGITS || hasExponent(text, start, at))
        exact = checkNumber(text.slice(start, at + 1)) || exact;
    } else if (c <= 0x20 && ++blanks > WHITE_SPACE_MAX_CHARS)
      throw new JsonError(
        `The JSON has more than ${WHITE_SPACE_MAX_CHARS} characters of white space between its values.`,
      );
  }
  return { members, exact };
}

const tooMany = (what: 'members' | 'values', max: number): JsonError =>
  new JsonError(`The JSON has more than ${max} ${what}.`, { max });

/** End of the string that opens at `from`; negative when it is not closed. */
function closingQuote(text: string, from: number): number {
  const first = text.indexOf('"', from + 1);
  if (first < 0 || text.charCodeAt(first - 1) !== BACKSLASH) return first;
  for (let at = from + 1; at < text.length; at++) {
    const c = text.charCodeAt(at);
    if (c === BACKSLASH) at++;
    else if (c === QUOTE) return at;
  }
  return -1;
}

const isNumberPart = (c: number): boolean =>
  (c >= 0x30 && c <= 0x39) || c === 0x2e || c === 0x65 || c === 0x45 || c === 0x2b || c === 0x2d;

function hasExponent(text: string, from: number, to: number): boolean {
  for (let at = from; at <= to; at++) if ((text.charCodeAt(at) | 0x20) === 0x65) return true;
  return false;
}

/** True when the literal must be kept as an ExactNumber. Throws when it is outside the range that the API accepts. */
function checkNumber(literal: string): boolean {
  const value = Number(literal);
  if (Number.isNaN(value)) return false; // JSON.parse says what is wrong
  const shown = literal.length > SHOWN_CHARS ? `${literal.slice(0, SHOWN_CHARS)}…` : literal;
  if (!Number.isFinite(value)) throw new JsonError(`The number ${shown} exceeds the range of a double.`);
  if (value === 0 && /^-?[0.]*[1-9]/.test(literal))
    throw new JsonError(`The number ${shown} exceeds the range of a double.`);
  if (/^-?\d+$/.test(literal)) {
    if (!Number.isSafeInteger(value))
      throw new JsonError(
        `The integer ${shown} is beyond ±9007199254740991. Send it as a string where text is allowed.`,
      );
    return false;
  }
  return decimal(literal) !== decimal(String(value));
}

/** Digits and power of ten without redundant zeros, so that 1.50 and 15e-1 compare equal. */
function decimal(literal: string): string {
  const [, sign, whole, fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal) ?? [];
  if (whole === undefined) return literal;
  const all = (whole + fraction).replace(/^0+/, '');
  const digits = withoutTrailingZeros(all);
  if (!digits) return '0';
  return `${sign}${digits}e${Number(exponent) - fraction.length + (all.length - digits.length)}`;
}

/** Counts the members of all objects; refuses what no service may receive. */
function inspect(value: unknown, strings: boolean): number {
  if (typeof value === 'string') {
    if (strings && (!value.isWellFormed() || value.includes('\0')))
      throw new JsonError('A string contains U+0000 or an unpaired surrogate.');
    return 0;
  }
  if (typeof value !== 'object' || value === null || value instanceof ExactNumber) return 0;
  let members = 0;
  if (Array.isArray(value)) {
    for (const item of value) members += inspect(item, strings);
    return members;
  }
  for (const [key, member] of Object.entries(value)) {
    if (key === '__proto__') throw new JsonError('The name "__proto__" is not allowed.');
    if (strings) inspect(key, true);
    members += 1 + inspect(member, strings);
  }
  return members;
}

/**
 * Parses strict JSON. Decimals that a double cannot hold come as ExactNumber. Throws JsonError.
 * @param maxDepth levels of arrays and objects that are allowed
 */
export function parseJson(text: string, maxDepth: number): unknown {
  const { members, exact } = scan(text, maxDepth);
  let value: unknown;
  try {
    value = exact ? parseExactly(text) : JSON.parse(text);
  } catch (error) {
    if (error instanceof JsonError) throw error;
    throw new JsonError('The text is not well-formed JSON.');
  }
  if (inspect(value, SUSPICIOUS_ESCAPE.test(text)) !== members)
    throw new JsonError('An object has a duplicate property name.');
  return value;
}

/** As parseJson, from the bytes of a body: they must be UTF-8 without a byte order mark. */
export function parseJsonBytes(bytes: Uint8Array, maxDepth: number): unknown {
  if (!isUtf8(bytes)) throw new JsonError('The body is not valid UTF-8.');
  return parseJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'), maxDepth);
}

function parseExactly(text: string): unknown {
  const reviver = (_key: string, value: unknown, { source = '' }: { source?: string } = {}): unknown =>
    typeof value === 'number' && source.length > 2 && checkNumber(source) ? new ExactNumber(source) : value;
  return JSON.parse(text, reviver);
}
