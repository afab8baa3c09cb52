/**
 * The change feed of an object, for one caller: records to update in a copy and records to drop from it. A position in
 * the feed is a snapshot of the database: what the snapshot could not see yet has changed since, in whatever order
 * transactions committed, so nothing is ever missed. Whether the caller could see a record at that moment is computed
 * from the record as it is and from what was changed since. Many changes are reported in windows, each between two
 * snapshots, so that a page costs what its window holds and not what is still to come. Source:
 * docs/reference/records.md.
 */

import type { Handler } from '../../../contracts/operations.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { sealFor } from '../../../lib/values/sealed.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import { type Epoch, epochOf, inEpoch } from '../../../mixins/epoch/epoch.ts';
import { visibleObject } from '../object-access.ts';
import type { ReadDeps } from '../read/read.ts';
import { checkedRow } from '../read/versions.ts';
import { etagOf } from '../sql.ts';
import type { View } from '../view.ts';
import {
  CANDIDATES_MAX,
  type ChangeRow,
  changesStatement,
  type Feed,
  type MomentRow,
  momentStatement,
  type WindowEndRow,
  windowEndStatement,
} from './changes.sql.ts';
import { type FeedAccess, feedAccess } from './changes-access.ts';
import {
  type ChangeWindow,
  FEED_CURSOR_VALID_DAYS,
  type FeedPosition,
  openPosition,
  sealPosition,
  snapshotUpTo,
  syncExpired,
} from './changes-cursor.ts';
import { pageReply } from './page.ts';

/** A page that is not full by then is returned as it is. */
const PAGE_MAX_MS = 5_000;

export const listChanges: Handler<'data.changes.list', ReadDeps> = async (deps, request, call) => {
  const { tenantId, userId } = request;
  const { take, takeClamped, cursor } = parseListQuery(call.query, 'query');
  const seal = sealFor(request, deps.sealingKeys, platformTime());
  return deps.tenants.withView(tenantId, userId, async (view) => {
    const { object, readable } = visibleObject(view, call.path.objectApiName);
    const access = feedAccess(view.access, object.apiName);
    const start = cursor === null ? null : openPosition(cursor, object.apiName, seal);
    const ieee754Compatible = call.ieee754Compatible ?? false;
    const feed: Feed = { tenantId, object, readable, access, ieee754Compatible };
    const read = (tx: Tx): Promise<Page> =>
      inOneSnapshot(tx, async () => {
        const moment = await readMoment(tx, view, start);
        const latest = positionAt(moment, object.apiName, access, seal.now);
        if (start === null) return { entries: [], position: latest, more: false };
        const reason = expiryReason(start, moment, access, seal.now);
        if (reason !== null) throw syncExpired(reason, sealPosition(latest, seal));
        return readPage(tx, feed, take, start, latest);
      });
    const page = await inEpoch(deps.database, tenantId, () => deps.database.tenant(tenantId, read));
    const next = sealPosition(page.position, seal);
    return pageReply({ take, takeClamped }, page.entries, page.more ? next : null, { resumeCursor: next });
  });
};

interface Page {
  readonly entries: readonly string[];
  readonly position: FeedPosition;
  /** There are further pages up to the moment at which the feed was read. */
  readonly more: boolean;
}

/**
 * All statements of the work see the database as it is now. They look records up one by one, in the order of their ids,
 * and stop when the page is full: joining by hashes would read whole tables for it.
 */
async function inOneSnapshot<T>(tx: Tx, work: () => Promise<T>): Promise<T> {
  tx.gather();
  tx.begin(
    `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
      SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off`,
  );
  try {
    return await work();
  } finally {
    if (!tx.isAbandoned) await tx.control('ROLLBACK');
  }
}

/**
 * Everything committed by now, up to the last transaction that left an audit row, as every change does. Later
 * transaction numbers may belong to transactions that were rolled back and never reached the disk: after a crash of the
 * database they are assigned again, and what is written under them must not count as reported already.
 */
async function readMoment(tx: Tx, view: View, start: FeedPosition | null): Promise<Epoch> {
  const row = checkedRow(view, await tx.all<MomentRow>(momentStatement(tx.schema)));
  const { epoch, snapshot } = epochOf(row, ...(start?.epoch === row.epoch ? [start.snapshot] : []));
  return { epoch, snapshot: snapshotUpTo(row.lastTx, snapshot, '3:3:') };
}

const positionAt = ({ snapshot, epoch }: Epoch, object: string, access: FeedAccess, now: number): FeedPosition => ({
  object,
  time: now,
  epoch,
  access: access.hashUpTo(access.lastUserId),
  lastUserId: access.lastUserId,
  snapshot,
  initial: true,
  window: null,
});

/** Why a copy cannot be continued from a position; null when it can. */
function expiryReason(start: FeedPosition, { epoch }: Epoch, access: FeedAccess, now: number): string | null {
  if (now - start.time > FEED_CURSOR_VALID_DAYS * 86_400_000)
    return `The cursor is older than ${FEED_CURSOR_VALID_DAYS} days.`;
  if (start.access !== access.hashUpTo(start.lastUserId))
    return 'What the caller may see has changed by a deployment or by changed permissions.';
  return start.epoch === epoch ? null : 'The database was restored from a backup, or another server took over.';
}

/** Reads window by window until the page is full or nothing is left. `latest` is the position of a new caller. */
async function readPage(tx: Tx, feed: Feed, take: number, start: FeedPosition, latest: FeedPosition): Promise<Page> {
  // By id: a record that changed in several windows is in a page once, with its latest state.
  const reported = new Map<string, string>();
  const until = performance.now() + PAGE_MAX_MS;
  let left = LIMITS.page_max_bytes;
  let { time, snapshot, window } = start;
  // The users of now: what changes about them from here on ends the cursor.
  const { access, lastUserId } = latest;
  const page = (more: boolean): Page => ({
    entries: [...reported].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry),
    position: { ...start, access, lastUserId, time, snapshot, initial: start.initial && more, window },
    more,
  });
  for (;;) {
    const position: FeedPosition = { ...start, time, snapshot };
    window ??= await nextWindow(tx, feed, position, latest);
    const room = take - reported.size;
    const statement = changesStatement(feed, position, window, latest.snapshot, room + 1);
    const { rows, more } = await tx.allUpTo<ChangeRow>(statement, left);
    const found = rows.filter((row) => row.id !== null);
    for (const row of found.slice(0, room)) {
      const entry = entryJson(row);
      reported.set(row.id, entry);
      left -= entry.length;
    }
    const [{ lastId, candidateCount } = NO_CANDIDATES] = rows;
    if (more || found.length > room) {
      const lastReported = found[Math.min(room, found.length) - 1];
      if (lastReported) window = { ...window, afterId: lastReported.id };
      if (more || reported.size === take) return page(true);
    } else if (candidateCount === CANDIDATES_MAX) window = { ...window, afterId: lastId };
    else {
      const { isLast } = window;
      time = window.endTime;
      snapshot = window.end;
      window = null;
      if (isLast) return page(false);
    }
    if (left <= 0 || performance.now() > until) return page(true);
  }
}

const NO_CANDIDATES = { lastId: null, candidateCount: 0 };

/** The next changes that are reported together. */
async function nextWindow(tx: Tx, feed: Feed, position: FeedPosition, latest: FeedPosition): Promise<ChangeWindow> {
  const end = await tx.first<WindowEndRow>(windowEndStatement(tx.schema, feed, position.snapshot));
  if (end === null) return { end: latest.snapshot, endTime: latest.time, isLast: true, afterId: null };
  return {
    end: snapshotUpTo(end.tx, latest.snapshot, position.snapshot),
    endTime: Math.min(Math.max(position.time, end.time), latest.time),
    isLast: false,
    afterId: null,
  };
}

const entryJson = ({ id, change, record, version }: ChangeRow): string =>
  `{"id":"${id}","change":"${change}","record":${record ?? 'null'},"etag":${
    version === null ? 'null' : JSON.stringify(etagOf(version))
  }}`;
