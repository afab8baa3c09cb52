/**
 * Cursors: the position after the last record of a page, sealed so that no caller can read a hidden value in it, forge it
 * or use the cursor of another caller. Bound to tenant, user and client (not to the token, so that a refresh does not
 * end a traversal) and to the parameters that select and sort the records. Source: docs/reference/querying.md.
 */
import { hash } from 'node:crypto';
import { PlatformError, violation } from '../errors/platform-error.ts';
import { valueTypeName } from '../schema/field-types/registry.ts';
import { type Seal, sealed, unsealed } from '../values/sealed.ts';
import type { ListRequest, Plan } from './types.ts';

const CURSOR_VALID_HOURS = 24;
export const CURSOR_VALID_MS = CURSOR_VALID_HOURS * 60 * 60 * 1_000;

/** The messages of refused cursors, for all lists. */
export const CURSOR_MESSAGES = {
  invalid: 'The cursor was not issued for this list to this user and client.',
  expired: `The cursor is older than ${CURSOR_VALID_HOURS} hours. Start again without a cursor.`,
  mismatch: (changed: readonly string[]): string =>
    `The cursor was issued for other parameters. Changed: ${changed.join(', ')}.`,
} as const;

const PREFIX = 'c1.';

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
  seal: Seal,
  random?: Uint8Array,
): string {
  const payload: Payload = {
    e: seal.now + CURSOR_VALID_MS,
    p: boundHashes(plan, request),
    s: sortShape(plan),
    k: lastKeys,
  };
  return sealPayload(payload, seal, '', random);
}

/** Cursors of different kinds are kept apart by their `purpose`; lists of records have none. */
export const sealPayload = (payload: object, seal: Seal, purpose: string, random?: Uint8Array): string =>
  PREFIX + sealed(payload, seal, purpose, random);

/** Opens a sealed payload; null when it is forged, altered, or belongs to another caller or purpose. */
export const openPayload = <T>(cursor: string, seal: Seal, purpose: string): T | null =>
  cursor.startsWith(PREFIX) ? unsealed<T>(cursor.slice(PREFIX.length), seal, purpose) : null;

/**
 * The plan of the page that `request.cursor` stands for; the plan itself when there is no cursor.
 * @throws PlatformError 400 CURSOR_INVALID (forged, altered, or of another caller), CURSOR_EXPIRED,
 *   CURSOR_QUERY_MISMATCH with `details.changed`.
 */
export function continuePlan(plan: Plan, request: ListRequest, seal: Seal): Plan {
  if (request.cursor === null) return plan;
  const pointer = request.source === 'query' ? 'query:cursor' : '/cursor';
  const payload = openPayload<Payload>(request.cursor, seal, '');
  if (!payload) throw cursorError('CURSOR_INVALID', CURSOR_MESSAGES.invalid, pointer);
  if (payload.e <= seal.now) throw cursorError('CURSOR_EXPIRED', CURSOR_MESSAGES.expired, pointer);
  const hashes = boundHashes(plan, request);
  const changed: string[] = BOUND.filter((_, index) => hashes[index] !== payload.p[index]);
  if (changed.length > 0) {
    const at = changed.indexOf('sort');
    if (at >= 0 && request.sort?.[0]?.pointer.endsWith('orderBy')) changed[at] = 'orderBy';
    throw cursorError('CURSOR_QUERY_MISMATCH', CURSOR_MESSAGES.mismatch(changed), pointer, { changed });
  }
  if (payload.s !== sortShape(plan))
    throw cursorError(
      'CURSOR_INVALID',
      'A field that the records are sorted by has changed. Start again without a cursor.',
      pointer,
    );
  return { ...plan, after: payload.k };
}

const sortShape = (plan: Plan): string =>
  plan.sort
    .map(({ field, desc, through }) => {
      const path = through ? `${through.reference.apiName}.${field.apiName}` : field.apiName;
      return `${path}:${valueTypeName(field)}:${desc ? 'desc' : 'asc'}`;
    })
    .join();

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
    // The source of the parameter (address or body) makes no difference.
    const text = JSON.stringify(value, (key, inner) => (key === 'pointer' ? undefined : inner));
    return hash('sha256', text, 'base64url').slice(0, 8);
  });
}

/** 400 for a cursor, at `pointer`. */
export const cursorError = (
  code: 'CURSOR_INVALID' | 'CURSOR_EXPIRED' | 'CURSOR_QUERY_MISMATCH',
  message: string,
  pointer: string,
  details?: Record<string, unknown>,
): PlatformError =>
  new PlatformError(code, message, {
    errors: [violation(pointer, code, message, { params: details ?? {} })],
    ...(details ? { details } : {}),
  });
