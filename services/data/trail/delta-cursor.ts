/**
 * Where a caller stands in the changes of an object: everything that a snapshot of the database sees has been told, and
 * of the stretch behind it what comes up to an id. Sealed like every cursor.
 */
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { cursorError, openPayload, sealPayload } from '../../../lib/query/cursor.ts';
import type { Seal } from '../../../lib/values/sealed.ts';

/** Changes that lie behind one snapshot and before another one. They are told in the order of the records' ids. */
export interface Stretch {
  /** Its end, a snapshot. */
  readonly upTo: string;
  /** Milliseconds since 1970: what the end does not see was not begun much before. */
  readonly reached: number;
  /** It reached to the moment at which it was begun: the round ends with it. */
  readonly last: boolean;
  /** The last id that has been told. */
  readonly after: string | null;
}

export interface Delta {
  readonly object: string;
  /** Milliseconds since 1970: what the snapshot does not see was not begun much before. */
  readonly since: number;
  /** The database server that the snapshots belong to. */
  readonly server: string;
  /** What decides which records the caller sees, and what of them. */
  readonly sight: string;
  /** The snapshot: what it sees has been told. */
  readonly from: string;
  /** The first round: the copy is filled from lists, so it may hold whatever was in sight at some time since. */
  readonly first: boolean;
  /** The stretch that is being told; null: none has been begun. */
  readonly stretch: Stretch | null;
}

export const DELTA_VALID_DAYS = 7;

const PURPOSE = 'changes in stretches';
const POINTER = 'query:cursor';

interface Payload {
  readonly o: string;
  readonly t: number;
  readonly s: string;
  readonly h: string;
  readonly f: string;
  readonly i: boolean;
  readonly n: Stretch | null;
}

/**
 * A snapshot that sees what `current` sees of the transactions up to `last`, and all that `from` saw: one that was running
 * then may be older than what `from` had seen already. Source: pg_snapshot in the manual of PostgreSQL, `xmin:xmax:running`.
 */
export function endAt(current: string, last: string, from: string): string {
  const behind = [BigInt(last) + 1n, BigInt(from.split(':')[1]!)];
  const end = behind[0]! > behind[1]! ? behind[0]! : behind[1]!;
  const running = (current.split(':')[2] ?? '').split(',').filter((xid) => xid !== '' && BigInt(xid) < end);
  return `${running[0] ?? end}:${end}:${running.join()}`;
}

export function sealDelta({ object, since, server, sight, from, first, stretch }: Delta, seal: Seal): string {
  const payload: Payload = { o: object, t: since, s: server, h: sight, f: from, i: first, n: stretch };
  return sealPayload(payload, seal, PURPOSE);
}

/** @throws PlatformError 400 CURSOR_INVALID, CURSOR_QUERY_MISMATCH when it is that of another object. */
export function openDelta(cursor: string, object: string, seal: Seal): Delta {
  const payload = openPayload<Payload>(cursor, seal, PURPOSE);
  if (!payload) throw cursorError('CURSOR_INVALID', 'The cursor is not one that this list was given.', POINTER);
  if (payload.o !== object)
    throw cursorError('CURSOR_QUERY_MISMATCH', 'The cursor belongs to the changes of another object.', POINTER, {
      changed: ['objectApiName'],
    });
  const { o, t, s, h, f, i, n } = payload;
  return { object: o, since: t, server: s, sight: h, from: f, first: i, stretch: n };
}

/** The copy cannot be brought up to date from here. `oldestCursor` is where changes can be followed from now on. */
export const syncExpired = (why: string, oldestCursor: string): PlatformError =>
  new PlatformError('SYNC_TOKEN_EXPIRED', `${why} Start a full sync: list all records, then go on with oldestCursor.`, {
    errors: [violation(POINTER, 'SYNC_TOKEN_EXPIRED', why)],
    details: { oldestCursor },
  });
