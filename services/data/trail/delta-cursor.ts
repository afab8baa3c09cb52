/**
 * Where a caller stands in the changes of an object. Records are told in the order of their ids and page by page, and
 * each page sees the database at a moment of its own; so the cursor says for every range of ids at which moment it was
 * told last. A round that is walked without a page in between ends in one range. Sealed like every cursor.
 */
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { type CursorSeal, openPayload, sealPayload } from '../../../lib/query/cursor.ts';

/** Records up to this id (null: all others) are known as this snapshot saw them. */
export interface Segment {
  readonly upTo: string | null;
  readonly snapshot: string;
}

export interface Delta {
  readonly object: string;
  /** Milliseconds since 1970: not later than the oldest snapshot. */
  readonly since: number;
  /** The same of the oldest snapshot of this round. */
  readonly begun: number;
  /** The database server that the snapshots belong to. */
  readonly server: string;
  /** What decides which records the caller sees, and what of them. */
  readonly sight: string;
  /** The last id that was told in this round. */
  readonly after: string | null;
  /** Ranges that this round has still to walk. */
  readonly pending: readonly Segment[];
  /** Ranges that it has walked. */
  readonly done: readonly Segment[];
}

export const DELTA_VALID_DAYS = 7;
/** More ranges do not fit into an address. */
export const DELTA_PAGES_MAX = 150;

const PURPOSE = 'changes';

interface Payload {
  readonly o: string;
  readonly t: number;
  readonly b: number;
  readonly s: string;
  readonly h: string;
  readonly a: string | null;
  readonly p: readonly (readonly [string | null, string])[];
  readonly d: readonly (readonly [string | null, string])[];
}

const short = (segments: readonly Segment[]) =>
  segments.map(({ upTo, snapshot }): [string | null, string] => [upTo?.replaceAll('-', '') ?? null, snapshot]);

const long = (segments: Payload['p']): Segment[] =>
  segments.map(([upTo, snapshot]) => ({
    upTo: upTo?.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5') ?? null,
    snapshot,
  }));

export function sealDelta(delta: Delta, seal: CursorSeal): string {
  const payload: Payload = {
    o: delta.object,
    t: delta.since,
    b: delta.begun,
    s: delta.server,
    h: delta.sight,
    a: delta.after,
    p: short(delta.pending),
    d: short(delta.done),
  };
  return sealPayload(payload, seal, PURPOSE);
}

/** @throws PlatformError 400 CURSOR_INVALID, CURSOR_QUERY_MISMATCH when it is that of another object. */
export function openDelta(cursor: string, object: string, seal: CursorSeal): Delta {
  const payload = openPayload<Payload>(cursor, seal, PURPOSE);
  if (!payload) throw invalid('CURSOR_INVALID', 'The cursor is not one that this list was given.');
  if (payload.o !== object)
    throw invalid('CURSOR_QUERY_MISMATCH', 'The cursor belongs to the changes of another object.', {
      changed: ['objectApiName'],
    });
  return {
    object,
    since: payload.t,
    begun: payload.b,
    server: payload.s,
    sight: payload.h,
    after: payload.a,
    pending: long(payload.p),
    done: long(payload.d),
  };
}

/** The copy cannot be brought up to date from here. `oldestCursor` is where changes can be followed from now on. */
export const syncExpired = (why: string, oldestCursor: string): PlatformError =>
  new PlatformError('SYNC_TOKEN_EXPIRED', `${why} Start a full sync: list all records, then go on with oldestCursor.`, {
    errors: [violation('query:cursor', 'SYNC_TOKEN_EXPIRED', why)],
    details: { oldestCursor },
  });

const invalid = (
  code: 'CURSOR_INVALID' | 'CURSOR_QUERY_MISMATCH',
  message: string,
  details?: Record<string, unknown>,
): PlatformError =>
  new PlatformError(code, message, {
    errors: [violation('query:cursor', code, message, { params: details ?? {} })],
    ...(details ? { details } : {}),
  });
