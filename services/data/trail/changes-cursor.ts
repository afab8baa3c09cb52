/**
 * The position of a caller in the change feed of an object: what a snapshot of the database sees has been reported, and
 * of the window that follows the changes up to a record id. Sealed like every cursor.
 */
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { CURSOR_MESSAGES, cursorError, openPayload, sealPayload } from '../../../lib/query/cursor.ts';
import type { Seal } from '../../../lib/values/sealed.ts';

/** Changes between two snapshots. They are reported in the order of the records' ids. */
export interface ChangeWindow {
  /** The snapshot at its end. */
  readonly end: string;
  /** Milliseconds since 1970: what the end does not see was not begun much before. */
  readonly endTime: number;
  /** It reaches up to the moment at which it was opened: no more pages follow it. */
  readonly isLast: boolean;
  /** The last id that was reported. */
  readonly afterId: string | null;
}

export interface FeedPosition {
  readonly object: string;
  /** Milliseconds since 1970: what the snapshot does not see was not begun much before. */
  readonly time: number;
  /** The epoch within which the snapshots mean something. */
  readonly epoch: string;
  /** Hash of what decides which records the caller sees, and what of them. */
  readonly access: string;
  /** The last user whom the hash takes in. */
  readonly lastUserId: string;
  /** Everything visible to this snapshot has been reported. */
  readonly snapshot: string;
  /** The first pass: the copy is filled from lists, so it may hold whatever was visible at some time since. */
  readonly initial: boolean;
  /** The window that is being reported; null: none has been opened. */
  readonly window: ChangeWindow | null;
}

export const FEED_CURSOR_VALID_DAYS = 7;

const PURPOSE = 'changes in stretches';
const POINTER = 'query:cursor';

/** As it is sealed: cursors that callers hold must open after an update of the platform. */
interface Payload {
  readonly o: string;
  readonly t: number;
  readonly s: string;
  readonly h: string;
  readonly u: string;
  readonly f: string;
  readonly i: boolean;
  readonly n: {
    readonly upTo: string;
    readonly reached: number;
    readonly last: boolean;
    readonly after: string | null;
  } | null;
}

/**
 * A snapshot that sees what `current` sees of the transactions up to `last`, and all that `earlier` saw: a transaction
 * that was running then may be older than what `earlier` had already seen. Source: the PostgreSQL manual on
 * pg_snapshot, `xmin:xmax:running`.
 */
export function snapshotUpTo(last: string, current: string, earlier: string): string {
  const [afterLast, seenEarlier] = [BigInt(last) + 1n, BigInt(earlier.split(':')[1] ?? 0)];
  const end = afterLast > seenEarlier ? afterLast : seenEarlier;
  const running = (current.split(':')[2] ?? '').split(',').filter((xid) => xid !== '' && BigInt(xid) < end);
  return `${running[0] ?? end}:${end}:${running.join()}`;
}

export function sealPosition(position: FeedPosition, seal: Seal): string {
  const { object, time, epoch, access, lastUserId, snapshot, initial, window } = position;
  const n = window && { upTo: window.end, reached: window.endTime, last: window.isLast, after: window.afterId };
  const payload: Payload = { o: object, t: time, s: epoch, h: access, u: lastUserId, f: snapshot, i: initial, n };
  return sealPayload(payload, seal, PURPOSE);
}

/** @throws PlatformError 400 CURSOR_INVALID, CURSOR_QUERY_MISMATCH when it is that of another object. */
export function openPosition(cursor: string, object: string, seal: Seal): FeedPosition {
  const payload = openPayload<Payload>(cursor, seal, PURPOSE);
  if (!payload) throw cursorError('CURSOR_INVALID', CURSOR_MESSAGES.invalid, POINTER);
  if (payload.o !== object)
    throw cursorError('CURSOR_QUERY_MISMATCH', 'The cursor was issued for another object.', POINTER, {
      changed: ['objectApiName'],
    });
  const { o, t, s, h, u, f, i, n } = payload;
  const window = n && { end: n.upTo, endTime: n.reached, isLast: n.last, afterId: n.after };
  return { object: o, time: t, epoch: s, access: h, lastUserId: u, snapshot: f, initial: i, window };
}

/** The copy cannot be continued from here. `oldestCursor` is the position from which the changes can be followed. */
export const syncExpired = (reason: string, oldestCursor: string): PlatformError =>
  new PlatformError(
    'SYNC_TOKEN_EXPIRED',
    `${reason} Start a full sync: list all records, then continue from oldestCursor.`,
    {
      errors: [violation(POINTER, 'SYNC_TOKEN_EXPIRED', reason)],
      details: { oldestCursor },
    },
  );
