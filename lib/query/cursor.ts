/**
 * Cursors: the place after the last record of a page, sealed so that nobody can read a hidden value in it, forge it or
 * use another's. Bound to tenant, user and client (not to the token, so that a refresh does not end a traversal) and to
 * the parameters that decide which records come in which order. Source: docs/reference/querying.md.
 */
import { createCipheriv, createDecipheriv, createSecretKey, hash, type KeyObject, randomBytes } from 'node:crypto';
import { PlatformError, violation } from '../errors/platform-error.ts';
import { valueTypeName } from '../field-types/registry.ts';
import { remembered } from '../remembered.ts';
import type { ListRequest, Plan } from './types.ts';

export const CURSOR_VALID_MS = 24 * 60 * 60 * 1000;

const PREFIX = 'c1.';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Whose cursor it is, and what it is sealed with. */
export interface CursorSeal {
  /** 32 bytes, the same in every process of the deployment. */
  readonly key: Uint8Array;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly tenantId: string;
  readonly userId: string;
  readonly clientId: string;
}

/** Parameters that must stay the same from page to page, in the order of their hashes in the cursor. */
const BOUND = [
  'objectApiName',
  'take',
  'fields',
  'where',
  'whereIn',
  'filters',
  'sort',
  'search',
  'searchFields',
] as const;

interface Payload {
  /** End of validity, milliseconds since 1970. */
  readonly e: number;
  /** Hashes of the bound parameters. */
  readonly p: readonly string[];
  /** Names and types of the sort keys: a deployment may have changed them meanwhile. */
  readonly s: string;
  /** Sort values of the last record. */
  readonly k: readonly (string | null)[];
}

/** The cursor for the page after `lastKeys`. `random`: 12 bytes, never twice with the same key. */
export function sealCursor(
  lastKeys: readonly (string | null)[],
  plan: Plan,
  request: ListRequest,
  seal: CursorSeal,
  random: Uint8Array = randomBytes(IV_BYTES),
): string {
  const payload: Payload = {
    e: seal.now + CURSOR_VALID_MS,
    p: boundHashes(plan, request),
    s: sortShape(plan),
    k: lastKeys,
  };
  return sealPayload(payload, seal, '', random);
}

/** A payload sealed for its owner. `purpose` keeps cursors of different kinds apart; lists of records have none. */
export function sealPayload(
  payload: object,
  seal: CursorSeal,
  purpose: string,
  random: Uint8Array = randomBytes(IV_BYTES),
): string {
  const cipher = createCipheriv('aes-256-gcm', keyOf(seal.key), random, { authTagLength: TAG_BYTES });
  cipher.setAAD(owner(seal, purpose));
  const sealed = Buffer.concat([
    random,
    cipher.update(JSON.stringify(payload), 'utf8'),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
  return PREFIX + sealed.toString('base64url');
}

/**
 * The plan of the page that `request.cursor` stands for; the plan itself when there is no cursor.
 * @throws PlatformError 400 CURSOR_INVALID (not ours, altered, or another caller's), CURSOR_EXPIRED (after 24 h),
 *   CURSOR_QUERY_MISMATCH with `details.changed`.
 */
export function continuePlan(plan: Plan, request: ListRequest, seal: CursorSeal): Plan {
  if (request.cursor === null) return plan;
  const pointer = request.source === 'query' ? 'query:cursor' : '/cursor';
  const payload = openPayload<Payload>(request.cursor, seal, '');
  if (!payload) throw cursorError('CURSOR_INVALID', 'The cursor is not one that this query was given.', pointer);
  if (payload.e <= seal.now)
    throw cursorError('CURSOR_EXPIRED', 'The cursor is older than 24 hours; start again without it.', pointer);
  const hashes = boundHashes(plan, request);
  const changed: string[] = BOUND.filter((_, index) => hashes[index] !== payload.p[index]);
  if (changed.length > 0) {
    const at = changed.indexOf('sort');
    if (at >= 0 && request.sort?.[0]?.pointer.endsWith('orderBy')) changed[at] = 'orderBy';
    throw cursorError(
      'CURSOR_QUERY_MISMATCH',
      `The cursor belongs to a query with other parameters: ${changed.join(', ')}.`,
      pointer,
      { changed },
    );
  }
  if (payload.s !== sortShape(plan))
    throw cursorError('CURSOR_INVALID', 'A field that the records are sorted by has changed; start again.', pointer);
  return { ...plan, after: payload.k };
}

/** What sealPayload sealed; null when it is not ours, was altered, or belongs to somebody or something else. */
export function openPayload<T>(cursor: string, seal: CursorSeal, purpose: string): T | null {
  if (!cursor.startsWith(PREFIX) || !/^[A-Za-z0-9_-]+$/.test(cursor.slice(PREFIX.length))) return null;
  const sealed = Buffer.from(cursor.slice(PREFIX.length), 'base64url');
  if (sealed.length <= IV_BYTES + TAG_BYTES || sealed.toString('base64url') !== cursor.slice(PREFIX.length))
    return null;
  const decipher = createDecipheriv('aes-256-gcm', keyOf(seal.key), sealed.subarray(0, IV_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(owner(seal, purpose));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    const text = Buffer.concat([decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]);
    return JSON.parse(text.toString('utf8')) as T;
  } catch {
    return null;
  }
}

/** Raw bytes are made into a key once: OpenSSL needs 10 µs for it, a third of the whole cursor. */
const keyOf = remembered((key: Uint8Array): KeyObject => createSecretKey(key));

const owner = ({ tenantId, userId, clientId }: CursorSeal, purpose: string): Buffer =>
  Buffer.from(JSON.stringify(purpose ? [tenantId, userId, clientId, purpose] : [tenantId, userId, clientId]));

const sortShape = (plan: Plan): string =>
  plan.sort.map(({ field, desc }) => `${field.apiName}:${valueTypeName(field)}:${desc ? 'desc' : 'asc'}`).join();

const hashesOf = new WeakMap<ListRequest, readonly string[]>();

function boundHashes(plan: Plan, request: ListRequest): readonly string[] {
  let known = hashesOf.get(request);
  if (!known) hashesOf.set(request, (known = hashBound(plan, request)));
  return known;
}

function hashBound(plan: Plan, request: ListRequest): string[] {
  const parameters: Record<(typeof BOUND)[number], unknown> = {
    objectApiName: plan.object.apiName,
    take: request.take,
    fields: request.fields,
    where: request.where,
    whereIn: request.whereIn,
    filters: request.filters,
    sort: request.sort,
    search: request.search?.text,
    searchFields: request.search?.fields,
  };
  return BOUND.map((name) => {
    const value = parameters[name];
    if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) return '';
    // Where the parameter came from (address or body) makes no difference.
    const text = JSON.stringify(value, (key, inner) => (key === 'pointer' ? undefined : inner));
    return hash('sha256', text, 'base64url').slice(0, 8);
  });
}

const cursorError = (
  code: 'CURSOR_INVALID' | 'CURSOR_EXPIRED' | 'CURSOR_QUERY_MISMATCH',
  message: string,
  pointer: string,
  details?: Record<string, unknown>,
): PlatformError =>
  new PlatformError(code, message, {
    errors: [violation(pointer, code, message, { params: details ?? {} })],
    ...(details ? { details } : {}),
  });
