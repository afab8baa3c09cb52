/**
 * Cursors of lists of other things than records: the keys of the last entry of a page, sealed like the cursors of
 * record lists and bound to the same user and client and to all parameters that select entries. Source:
 * docs/reference/querying.md.
 */
import { hash } from 'node:crypto';
import type { Seal } from '../values/sealed.ts';
import { CURSOR_MESSAGES, CURSOR_VALID_MS, cursorError, openPayload, sealPayload } from './cursor.ts';

/** The list that a cursor belongs to. */
export interface ListIdentity {
  readonly name: string;
  /** Parameters that must stay the same from page to page. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

interface Payload {
  /** End of validity, milliseconds since 1970. */
  readonly e: number;
  readonly p: Readonly<Record<string, string>>;
  readonly k: readonly string[];
}

export const sealListCursor = (list: ListIdentity, keys: readonly string[], seal: Seal): string =>
  sealPayload(
    { e: seal.now + CURSOR_VALID_MS, p: hashes(list.parameters), k: keys } satisfies Payload,
    seal,
    list.name,
  );

/**
 * The keys in a cursor.
 * @throws PlatformError 400 CURSOR_INVALID, CURSOR_EXPIRED, CURSOR_QUERY_MISMATCH with `details.changed`.
 */
export function openListCursor(
  list: ListIdentity,
  cursor: string,
  seal: Seal,
  pointer = 'query:cursor',
): readonly string[] {
  const payload = openPayload<Payload>(cursor, seal, list.name);
  if (!payload) throw cursorError('CURSOR_INVALID', CURSOR_MESSAGES.invalid, pointer);
  if (payload.e <= seal.now) throw cursorError('CURSOR_EXPIRED', CURSOR_MESSAGES.expired, pointer);
  const now = hashes(list.parameters);
  const changed = [...new Set([...Object.keys(now), ...Object.keys(payload.p)])].filter(
    (name) => now[name] !== payload.p[name],
  );
  if (changed.length > 0)
    throw cursorError('CURSOR_QUERY_MISMATCH', CURSOR_MESSAGES.mismatch(changed), pointer, { changed });
  return payload.k;
}

const hashes = (parameters: ListIdentity['parameters']): Record<string, string> =>
  Object.fromEntries(
    Object.entries(parameters)
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([name, value]) => [name, hash('sha256', JSON.stringify(value), 'base64url').slice(0, 8)]),
  );
