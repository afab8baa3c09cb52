/**
 * Places in a list of the trail: the keys of the last entry of a page, sealed like the cursors of records and bound to
 * the same owner and to everything that decides which entries come. Source: docs/reference/querying.md.
 */
import { hash } from 'node:crypto';
import { CURSOR_VALID_MS, cursorError, openPayload, sealPayload } from '../../../lib/query/cursor.ts';
import type { Seal } from '../../../lib/values/sealed.ts';

const POINTER = 'query:cursor';

export interface ListOf {
  /** Which list it is: a cursor of another one is none of this. */
  readonly name: string;
  /** Parameters that must stay the same from page to page. */
  readonly bound: Readonly<Record<string, unknown>>;
}

interface Payload {
  /** End of validity, milliseconds since 1970. */
  readonly e: number;
  readonly p: Readonly<Record<string, string>>;
  readonly k: readonly string[];
}

export const sealPlace = (list: ListOf, keys: readonly string[], seal: Seal): string =>
  sealPayload({ e: seal.now + CURSOR_VALID_MS, p: hashes(list.bound), k: keys } satisfies Payload, seal, list.name);

/**
 * The keys in a cursor.
 * @throws PlatformError 400 CURSOR_INVALID, CURSOR_EXPIRED, CURSOR_QUERY_MISMATCH with `details.changed`.
 */
export function openPlace(list: ListOf, cursor: string, seal: Seal): readonly string[] {
  const payload = openPayload<Payload>(cursor, seal, list.name);
  if (!payload) throw cursorError('CURSOR_INVALID', 'The cursor is not one that this list was given.', POINTER);
  if (payload.e <= seal.now)
    throw cursorError('CURSOR_EXPIRED', 'The cursor is older than 24 hours; start again without it.', POINTER);
  const now = hashes(list.bound);
  const changed = [...new Set([...Object.keys(now), ...Object.keys(payload.p)])].filter(
    (name) => now[name] !== payload.p[name],
  );
  if (changed.length > 0)
    throw cursorError(
      'CURSOR_QUERY_MISMATCH',
      `The cursor belongs to a list with other parameters: ${changed.join(', ')}.`,
      POINTER,
      { changed },
    );
  return payload.k;
}

const hashes = (bound: ListOf['bound']): Record<string, string> =>
  Object.fromEntries(
    Object.entries(bound)
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([name, value]) => [name, hash('sha256', JSON.stringify(value), 'base64url').slice(0, 8)]),
  );
