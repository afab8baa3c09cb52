/** Lists of events: by their last change, with tokens to go on from, or expanded by time. */
import type { CalendarEvent } from '../../../contracts/calendar.ts';
import type { Handler, OperationInput } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { openListCursor, sealListCursor } from '../../../lib/query/list-cursor.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { type Seal, sealed, sealFor, unsealed } from '../../../lib/values/sealed.ts';
import type { CalendarDeps } from '../deps.ts';
import { DAY_MS } from '../recurrence/times.ts';
import { requireRecord, sightOf } from './access.ts';
import { asItself, changed, present } from './event.ts';
import { type ExpandedRow, type Listed, type ListedRow, listSql, positionSql, windowSql } from './events.sql.ts';
import { inTurns } from './turns.ts';
import { expand, tooManyInstances, windowOf } from './window.ts';

type Query = OperationInput<'calendar.events.list'>['query'];

const NAME = 'calendar.events';

/** A position in a calendar, sealed for its user. */
interface SyncToken {
  readonly c: string;
  readonly p: number;
  readonly e: string;
  /** Milliseconds since 1970. */
  readonly t: number;
}

interface Page {
  readonly records: readonly CalendarEvent[];
  readonly removedEventIds?: readonly string[];
  readonly next: readonly string[] | null;
  readonly nextSyncToken?: string | null;
}

export const listEvents: Handler<'calendar.events.list', CalendarDeps> = async (deps, request, { query }) => {
  refuseConflicts(query);
  const { take: _take, cursor: _cursor, ...parameters } = query;
  const { take, takeClamped, cursor } = parseListQuery(pagingOf(query), 'query');
  const seal = sealFor(request, deps.sealingKeys, platformTime());
  const list = { name: NAME, parameters };
  const after = cursor === null ? null : openListCursor(list, cursor, seal);
  const of = await listedOf(deps, request, query);
  const {
    records,
    removedEventIds = [],
    next,
    nextSyncToken = null,
  } = query.expand
    ? await expanded(deps, request, of, query, after, take)
    : await byChange(deps, request, of, query, after, take, seal);
  return {
    ...(takeClamped ? { headers: { 'X-Effective-Take': String(take) } } : {}),
    body: { records, removedEventIds, nextCursor: next && sealListCursor(list, next, seal), nextSyncToken },
  };
};

const pagingOf = ({ take, cursor }: Query) => ({
  ...(take === undefined ? {} : { take }),
  ...(cursor === undefined ? {} : { cursor }),
});

function refuseConflicts(query: Query): void {
  const { calendarId, objectApiName, recordId, from, to, expand, syncToken } = query;
  const isRecord = objectApiName !== undefined || recordId !== undefined;
  const missing = (name: string, message: string): PlatformError =>
    new PlatformError('PARAMETER_REQUIRED', message, {
      errors: [violation(`query:${name}`, 'PARAMETER_REQUIRED', message)],
    });
  const conflict = (name: string, message: string): PlatformError =>
    new PlatformError('PARAMETER_CONFLICT', message, {
      errors: [violation(`query:${name}`, 'PARAMETER_CONFLICT', message)],
    });
  if (isRecord && (objectApiName === undefined || recordId === undefined)) {
    const name = objectApiName === undefined ? 'objectApiName' : 'recordId';
    throw missing(name, `objectApiName and recordId name a record together: ${name} is missing.`);
  }
  if (isRecord && calendarId !== undefined) throw conflict('calendarId', 'calendarId and a record exclude each other.');
  if (expand && (from === undefined || to === undefined))
    throw missing(from === undefined ? 'from' : 'to', '`expand` needs `from` and `to`.');
  if (syncToken !== undefined && (isRecord || from !== undefined || to !== undefined || expand))
    throw conflict('syncToken', '`syncToken` goes with the whole calendar: without record, `from`, `to` and `expand`.');
}

/** Whose events are listed. Refuses records that the caller cannot read, and calendars of no user. */
async function listedOf(deps: CalendarDeps, request: RequestContext, query: Query): Promise<Listed> {
  const { tenantId, userId } = request;
  const { objectApiName, recordId } = query;
  if (objectApiName !== undefined && recordId !== undefined) {
    await requireRecord(deps, request, { objectApiName, id: recordId.toLowerCase() });
    return { objectApiName, recordId: recordId.toLowerCase() };
  }
  const calendarId = query.calendarId?.toLowerCase() ?? userId;
  if (calendarId === userId) return { calendarId, mine: null };
  const principals = [{ principalType: 'user' as const, principalId: calendarId }];
  if ((await deps.unknownPrincipals({ tenantId, userId, principals })).length > 0)
    throw new PlatformError('CALENDAR_NOT_FOUND', 'The calendar does not exist, or you have no access to it.');
  return { calendarId, mine: userId };
}

const isOwn = (of: Listed): boolean => 'calendarId' in of && of.mine === null;

/** Pages that are looked through for one that shows something. */
const SEARCHES_MAX = 10;
const NO_ID = '00000000-0000-0000-0000-000000000000';

async function byChange(
  deps: CalendarDeps,
  request: RequestContext,
  of: Listed,
  query: Query,
  cursor: readonly string[] | null,
  take: number,
  seal: Seal,
): Promise<Page> {
  const { tenantId } = request;
  const { from = null, to = null } = query;
  if (from !== null && to !== null) windowOf(from, to, LIMITS.calendar_window_days_max * 10, (name) => `query:${name}`);
  const syncs = isOwn(of) && from === null && to === null;
  const epoch = syncs ? (await deps.epoch({ tenantId })).epoch : '';
  const token = query.syncToken === undefined ? null : await openToken(deps, request, query.syncToken, epoch, seal);
  let after: [string, string, string] = [
    cursor?.[0] ?? String(token?.p ?? 0),
    cursor?.[1] ?? NO_ID,
    // Behind all of the event at which the token was made.
    cursor?.[2] ?? (token ? '~' : ''),
  ];
  if (!cursor && token) after = [String(token.p), 'ffffffff-ffff-ffff-ffff-ffffffffffff', '~'];
  // What a first page has shown may be gone before the last one, whose token lies behind that.
  const removed = token !== null || (syncs && cursor !== null);
  for (let search = 1; ; search++) {
    const statement = listSql(tenantId, { of, after, removed, from, to, take: take + 1 });
    const rows = await deps.database.shared('calendar', tenantId, (tx) => tx.all<ListedRow>(statement));
    const page = rows.slice(0, take);
    const there = page.filter(({ calendarId }) => calendarId !== null);
    const sight = await sightOf(deps, request, there);
    const records: CalendarEvent[] = [];
    for await (const row of inTurns(there)) {
      const seen = sight.get(row.eventId);
      const { override } = row;
      if (seen) records.push(present(row, override ? changed(row, override) : asItself(row), seen));
    }
    const removedEventIds = page.flatMap(({ calendarId, eventId }) => (calendarId === null ? [eventId] : []));
    const last = page.at(-1);
    const position = last ? [String(last.position), last.eventId, last.override?.originalStart ?? ''] : null;
    const more = rows.length > take;
    if (more && last && records.length + removedEventIds.length === 0 && search < SEARCHES_MAX) {
      after = [String(last.position), last.eventId, last.override?.originalStart ?? ''];
      continue;
    }
    const reached = last?.position ?? Number(after[0]);
    return {
      records,
      removedEventIds,
      next: more ? position : null,
      nextSyncToken: more || !syncs || !('calendarId' in of) ? null : sealToken(of.calendarId, reached, epoch, seal),
    };
  }
}

const PURPOSE = 'calendar sync token';

const sealToken = (calendarId: string, position: number, epoch: string, seal: Seal): string =>
  sealed({ c: calendarId, p: position, e: epoch, t: seal.now } satisfies SyncToken, seal, PURPOSE);

/** Throws SYNC_TOKEN_EXPIRED for a token that leads nowhere, with one that leads on from now. */
async function openToken(
  deps: CalendarDeps,
  { tenantId, userId }: RequestContext,
  text: string,
  epoch: string,
  seal: Seal,
): Promise<SyncToken> {
  const token = unsealed<SyncToken>(text, seal, PURPOSE);
  if (token?.c === userId && token.e === epoch && token.t > seal.now - LIMITS.calendar_sync_days * DAY_MS) return token;
  const row = await deps.database.shared('calendar', tenantId, (tx) =>
    tx.first<{ position: number }>(positionSql(tenantId, userId)),
  );
  throw new PlatformError(
    'SYNC_TOKEN_EXPIRED',
    'The sync token is not valid any more. List the whole calendar again.',
    {
      details: { oldestCursor: sealToken(userId, row?.position ?? 0, epoch, seal) },
    },
  );
}

async function expanded(
  deps: CalendarDeps,
  request: RequestContext,
  of: Listed,
  { from = '', to = '' }: Query,
  cursor: readonly string[] | null,
  take: number,
): Promise<Page> {
  const { tenantId } = request;
  const window = windowOf(from, to, LIMITS.calendar_window_days_max, (name) => `query:${name}`);
  const max = LIMITS.calendar_instances_max;
  const rows = await deps.database.shared('calendar', tenantId, (tx) =>
    tx.all<ExpandedRow>(windowSql(tenantId, of, from, to, max + 1)),
  );
  if (rows.length > max) throw tooManyInstances();
  const sight = await sightOf(deps, request, rows);
  const visible = rows.filter(({ eventId }) => sight.has(eventId));
  const found = (await expand(visible, window, max)).map(({ event, instance }) => {
    const time = instance.startAt - (event.startTimezone === null ? window.offset : 0);
    return { event, instance, key: [new Date(time).toISOString(), event.eventId, instance.original ?? ''] as const };
  });
  const sorted = found
    .map((one) => ({ ...one, text: one.key.join(' ') }))
    .sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
  const last = cursor?.join(' ') ?? '';
  const rest = sorted.filter(({ text }) => text > last);
  const page = rest.slice(0, take);
  return {
    records: page.flatMap(({ event, instance }) => {
      const seen = sight.get(event.eventId);
      return seen ? [present(event, instance, seen)] : [];
    }),
    next: rest.length > take ? (page.at(-1)?.key ?? null) : null,
  };
}
